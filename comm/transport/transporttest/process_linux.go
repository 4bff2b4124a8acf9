package transporttest

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/transport"
	"github.com/goccl/goccl/internal/leak"
	"github.com/goccl/goccl/internal/spin"
	"github.com/goccl/goccl/internal/testproc"
)

// Remote is an Echo process and the connections to and from it.
type Remote struct {
	Proc *testproc.Proc
	To   *Link // only its sending side is set
	From *Link // only its receiving side is set
}

// StartEcho starts the rank that TestMain gave to testproc.Enter by this name
// and connects tr with it, as rank 0.
func StartEcho(t testing.TB, name string, tr transport.Transport, spec transport.FIFOSpec) *Remote {
	ctx := Context(t)
	r := &Remote{Proc: testproc.Start(t, name, 1, testproc.Options{}).Procs[0]}
	c := NewConn(0, 0, 1, spec)
	r.To, r.From = &Link{Conn: c}, &Link{Conn: back(c)}
	me := NewPeer(t, 0, tr)
	peer := r.listen(t).Peer
	require.NoError(t, tr.CanConnect(me, peer))
	var err error
	r.From.RecvSide, err = tr.SetupRecv(ctx, r.From.Conn, peer)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.From.RecvSide.Close()) })
	b, err := json.Marshal(hello{Peer: me, Conn: c, Handle: r.From.RecvSide.Handle()})
	require.NoError(t, err)
	r.Proc.Send(t, string(b))
	r.To.SendSide, err = tr.ConnectSend(ctx, c, peer, r.listen(t).Handle)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.To.SendSide.Close()) })
	r.To.Send = r.To.SendSide.FIFO()
	r.From.Recv, err = r.From.RecvSide.FIFO(ctx)
	require.NoError(t, err)
	return r
}

func (r *Remote) listen(t testing.TB) (h hello) {
	require.NoError(t, json.Unmarshal([]byte(r.Proc.Next(t)), &h))
	return h
}

// RunProcesses is the part of the suite that needs a second process: the Echo
// that TestMain gave to testproc.Enter by this name.
func RunProcesses(t *testing.T, name string, open func(testing.TB) transport.Transport) {
	start := func(t *testing.T) *Remote {
		leak.VerifyNone(t)
		tr := open(t)
		t.Cleanup(func() { require.NoError(t, tr.Close()) })
		return StartEcho(t, name, tr, Spec)
	}
	t.Run("Echo", func(t *testing.T) {
		r := start(t)
		require.NoError(t, r.exchange(t, 200))
		require.NoError(t, r.To.SendSide.Close())
		require.NoError(t, r.Proc.Wait(t), r.Proc.Output())
		requireEnd(t, r.From.RecvSide.Err)
	})
	t.Run("C80Killed", func(t *testing.T) {
		r := start(t)
		require.NoError(t, r.exchange(t, 20))
		r.Proc.Kill(t)
		for side, broken := range map[string]func() error{"receiving": r.From.RecvSide.Err, "sending": r.To.SendSide.Err} {
			require.Eventually(t, func() bool { return broken() != nil }, Watchdog, time.Millisecond, side)
			require.ErrorIs(t, broken(), goccl.ErrPeerLost, side)
			var e *goccl.Error
			require.True(t, errors.As(broken(), &e))
			require.Equal(t, 1, e.Peer)
			require.NotEmpty(t, e.PeerAddr)
		}
	})
	t.Run("C80Stopped", func(t *testing.T) {
		r := start(t)
		require.NoError(t, r.exchange(t, 5))
		r.Proc.Stop(t)
		require.NoError(t, r.From.RecvSide.Err(), "a stopped process is not a lost one")
		r.Proc.Continue(t)
		require.NoError(t, r.exchange(t, 5))
	})
}

// exchange sends steps and takes them back.
func (r *Remote) exchange(t *testing.T, steps int) error {
	ctx := Context(t)
	for range steps {
		if err := r.To.SendSteps(ctx, 1); err != nil {
			return err
		}
		// The echo is the same step of the connection there.
		link := &Link{Conn: r.To.Conn, Recv: r.From.Recv, RecvSide: r.From.RecvSide}
		if err := link.RecvSteps(ctx, 1); err != nil {
			return err
		}
	}
	return nil
}

// PingPong measures a round trip of 8 bytes to the echo and back, waiting as the
// policy says.
func PingPong(b *testing.B, r *Remote, policy spin.Policy) {
	pingPong(b, r.To.Send, r.From.Recv, policy)
}
