package transporttest

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/transport"
	"github.com/goccl/goccl/internal/leak"
)

// Traits are what a transport promises beyond the contract.
type Traits struct {
	// Memory: both ranks see one FIFO, so that a sender is exactly Slots ahead of
	// its receiver at most, and the transport is a Mapper.
	Memory bool
}

// Run is the suite. open returns a new transport; the suite closes it.
func Run(t *testing.T, traits Traits, open func(testing.TB) transport.Transport) {
	world := func(t *testing.T) *World {
		leak.VerifyNone(t)
		return NewWorld(t, 2, open)
	}
	tests := []struct {
		name string
		test func(*testing.T, *World)
	}{
		{"InOrder", inOrder},
		{"Inline", inline},
		{"C55ZeroLength", zeroLength},
		{"FlowControl", flowControl},
		{"ManyConnections", manyConnections},
		{"BothDirections", bothDirections},
		{"C59CloseWithUnreadData", closeWithUnreadData},
		{"C36FlushThenClose", flushThenClose},
		{"ReceiverCloses", receiverCloses},
		{"NoSender", noSender},
		{"CloseEndsTheWait", closeEndsTheWait},
		{"ForeignHandles", foreignHandles},
		{"BadLayout", badLayout},
		{"AfterClose", afterClose},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.test(t, world(t)) })
	}
	if !traits.Memory {
		t.Run("NoMapper", func(t *testing.T) {
			_, ok := world(t).Transports[0].(transport.Mapper)
			require.False(t, ok)
		})
		return
	}
	t.Run("ExactCredit", func(t *testing.T) { exactCredit(t, world(t)) })
	runMapper(t, world)
}

func inOrder(t *testing.T, w *World) {
	require.NoError(t, w.Connect(t, NewConn(0, 0, 1, Spec)).Pass(Context(t), 500))
}

func inline(t *testing.T, w *World) {
	spec := transport.FIFOSpec{Slots: 2, SlotBytes: 64, Inline: true}
	require.NoError(t, w.Connect(t, NewConn(0, 0, 1, spec)).Pass(Context(t), 500))
}

// Messages of no bytes complete on both sides and are never the end.
func zeroLength(t *testing.T, w *World) {
	l := w.Connect(t, NewConn(0, 0, 1, Spec))
	for i := range 10 {
		require.Eventually(t, l.Send.Ready, Watchdog, time.Microsecond)
		l.Send.Post(0, uint32(100+i))
		require.Eventually(t, l.Recv.Ready, Watchdog, time.Microsecond)
		_, n, sig := l.Recv.Peek()
		require.Zero(t, n)
		require.Equal(t, uint32(100+i), sig)
		l.Recv.Release()
		require.NoError(t, l.RecvSide.Err())
		require.NoError(t, l.SendSide.Err())
	}
	require.NoError(t, l.SendSide.Close())
	requireEnd(t, l.RecvSide.Err)
}

// A receiver that takes nothing for a while loses nothing, however much waits
// for it: more than the kernel holds for a connection.
func flowControl(t *testing.T, w *World) {
	spec := transport.FIFOSpec{Slots: 4, SlotBytes: 1 << 20}
	l := w.Connect(t, NewConn(0, 0, 1, spec))
	ctx := Context(t)
	sent := make(chan error, 1)
	go func() { sent <- l.SendSteps(ctx, 32) }()
	require.Eventually(t, l.Recv.Ready, Watchdog, time.Millisecond)
	require.NoError(t, l.RecvSteps(ctx, 32))
	require.NoError(t, <-sent)
}

func exactCredit(t *testing.T, w *World) {
	l := w.Connect(t, NewConn(0, 0, 1, Spec))
	ctx := Context(t)
	for round := range 5 {
		for i := range Spec.Slots {
			require.True(t, l.Send.Ready(), "round %d, slot %d", round, i)
			require.NoError(t, l.SendSteps(ctx, 1))
		}
		require.False(t, l.Send.Ready(), "a slot too many")
		require.False(t, l.Send.Drained())
		require.NoError(t, l.RecvSteps(ctx, 1))
		require.True(t, l.Send.Ready())
		require.NoError(t, l.SendSteps(ctx, 1))
		require.False(t, l.Send.Ready())
		require.NoError(t, l.RecvSteps(ctx, Spec.Slots))
		require.False(t, l.Recv.Ready())
		require.True(t, l.Send.Drained())
	}
}

func manyConnections(t *testing.T, w *World) {
	var links []*Link
	for channel := range 24 {
		links = append(links, w.Connect(t, NewConn(channel, channel%2, 1-channel%2, Spec)))
	}
	passAll(t, links, 60)
}

func bothDirections(t *testing.T, w *World) {
	spec := transport.FIFOSpec{Slots: 2, SlotBytes: 64 << 10}
	passAll(t, []*Link{w.Connect(t, NewConn(0, 0, 1, spec)), w.Connect(t, NewConn(0, 1, 0, spec))}, 100)
}

func passAll(t *testing.T, links []*Link, steps int) {
	ctx := Context(t)
	ended := make(chan error, len(links))
	for _, l := range links {
		go func() { ended <- l.Pass(ctx, steps) }()
	}
	for range links {
		require.NoError(t, <-ended)
	}
}

// A sender that closes after its last step takes nothing away from a receiver
// that is late.
func closeWithUnreadData(t *testing.T, w *World) {
	spec := transport.FIFOSpec{Slots: 4, SlotBytes: 256 << 10}
	l := w.Connect(t, NewConn(0, 0, 1, spec))
	ctx := Context(t)
	require.NoError(t, l.SendSteps(ctx, spec.Slots))
	require.NoError(t, l.SendSide.Close())
	require.ErrorIs(t, l.SendSide.Err(), goccl.ErrClosed)
	require.NoError(t, l.RecvSide.Err(), "data is left")
	require.NoError(t, l.RecvSteps(ctx, spec.Slots))
	requireEnd(t, l.RecvSide.Err)
	require.False(t, l.Recv.Ready())
}

func flushThenClose(t *testing.T, w *World) {
	l := w.Connect(t, NewConn(0, 0, 1, Spec))
	ctx := Context(t)
	require.NoError(t, l.SendSide.Flush(ctx), "nothing was posted")
	require.NoError(t, l.SendSteps(ctx, Spec.Slots))
	require.NoError(t, l.SendSide.Flush(ctx))
	require.NoError(t, l.SendSide.Close())
	require.NoError(t, l.RecvSteps(ctx, Spec.Slots))
}

func receiverCloses(t *testing.T, w *World) {
	l := w.Connect(t, NewConn(0, 0, 1, Spec))
	require.NoError(t, l.Pass(Context(t), 4))
	require.NoError(t, l.SendSide.Err())
	require.NoError(t, l.RecvSide.Close())
	require.ErrorIs(t, l.RecvSide.Err(), goccl.ErrClosed)
	require.Eventually(t, func() bool { return l.SendSide.Err() != nil }, Watchdog, time.Millisecond)
	requirePeer(t, l.SendSide.Err(), l.Conn, 1)
}

func noSender(t *testing.T, w *World) {
	side, err := w.Transports[1].SetupRecv(Context(t), NewConn(0, 0, 1, Spec), w.Peers[0])
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_, err = side.FIFO(ctx)
	require.ErrorIs(t, err, goccl.ErrTimeout)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	requirePeer(t, err, NewConn(0, 0, 1, Spec), 0)
	require.NoError(t, side.Close())
	require.NoError(t, side.Close())
}

func closeEndsTheWait(t *testing.T, w *World) {
	side, err := w.Transports[1].SetupRecv(Context(t), NewConn(0, 0, 1, Spec), w.Peers[0])
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() {
		_, err := side.FIFO(Context(t))
		ended <- err
	}()
	require.NoError(t, side.Close())
	require.ErrorIs(t, <-ended, goccl.ErrClosed)
}

func foreignHandles(t *testing.T, w *World) {
	ctx := Context(t)
	c := NewConn(3, 0, 1, Spec)
	side, err := w.Transports[1].SetupRecv(ctx, c, w.Peers[0])
	require.NoError(t, err)
	defer side.Close()
	good := side.Handle()
	changed := append([]byte(nil), good...)
	changed[len(changed)-1] ^= 1
	for name, handle := range map[string][]byte{"empty": nil, "short": good[:len(good)-1], "long": append(good[:len(good):len(good)], 0), "changed": changed} {
		_, err := w.Transports[0].ConnectSend(ctx, c, w.Peers[1], handle)
		require.Error(t, err, name)
		requirePeer(t, err, c, 1)
	}
	sender, err := w.Transports[0].ConnectSend(ctx, c, w.Peers[1], good)
	require.NoError(t, err, "refused handles must leave the connection alone")
	defer sender.Close()
	_, err = w.Transports[0].ConnectSend(ctx, c, w.Peers[1], good)
	require.Error(t, err, "a second sender")
}

func badLayout(t *testing.T, w *World) {
	for _, spec := range []transport.FIFOSpec{{}, {Slots: 1, SlotBytes: 64}, {Slots: 2, SlotBytes: 65}, {Slots: 2, SlotBytes: -64}} {
		_, err := w.Transports[1].SetupRecv(Context(t), NewConn(0, 0, 1, spec), w.Peers[0])
		require.Error(t, err, "%+v", spec)
	}
}

func afterClose(t *testing.T, w *World) {
	ctx := Context(t)
	c := NewConn(0, 0, 1, Spec)
	side, err := w.Transports[1].SetupRecv(ctx, c, w.Peers[0])
	require.NoError(t, err)
	require.NoError(t, w.Transports[0].Close())
	require.NoError(t, w.Transports[0].Close())
	_, err = w.Transports[0].ConnectSend(ctx, c, w.Peers[1], side.Handle())
	require.ErrorIs(t, err, goccl.ErrClosed)
	_, err = w.Transports[0].SetupRecv(ctx, NewConn(0, 1, 0, Spec), w.Peers[1])
	require.ErrorIs(t, err, goccl.ErrClosed)
	require.NoError(t, side.Close())
}

// requireEnd waits for the orderly end of a connection.
func requireEnd(t *testing.T, broken func() error) {
	t.Helper()
	require.Eventually(t, func() bool { return broken() != nil }, Watchdog, time.Millisecond)
	require.ErrorIs(t, broken(), io.EOF)
	require.ErrorIs(t, broken(), goccl.ErrPeerLost)
}

// requirePeer wants an error that names the transport, the channel and the peer.
func requirePeer(t *testing.T, err error, c transport.Conn, peer int) {
	t.Helper()
	var e *goccl.Error
	require.True(t, errors.As(err, &e), "%v", err)
	require.Equal(t, peer, e.Peer)
	require.Equal(t, c.Channel, e.Channel)
	require.NotEmpty(t, e.Transport)
	require.NotEmpty(t, e.PeerAddr)
}
