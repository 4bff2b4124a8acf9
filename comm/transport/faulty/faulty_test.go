package faulty

import (
	"context"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/transport"
	"github.com/goccl/goccl/comm/transport/inproc"
	"github.com/goccl/goccl/comm/transport/net/socket"
	"github.com/goccl/goccl/comm/transport/transporttest"
	"github.com/goccl/goccl/internal/leak"
)

func TestMain(m *testing.M) { os.Exit(leak.Check(m)) }

func overInproc(c Config) func(testing.TB) transport.Transport {
	return func(testing.TB) transport.Transport { return New(inproc.New(), c) }
}

func TestContractWithoutFaults(t *testing.T) {
	t.Run("inproc", func(t *testing.T) { transporttest.Run(t, transporttest.Traits{}, overInproc(Config{})) })
	t.Run("socket", func(t *testing.T) {
		transporttest.Run(t, transporttest.Traits{}, func(t testing.TB) transport.Transport {
			inner, err := socket.New(socket.Config{})
			require.NoError(t, err)
			return New(inner, Config{})
		})
	})
}

func TestContractOnALink(t *testing.T) {
	transporttest.Run(t, transporttest.Traits{}, overInproc(Config{Link: Link{BitsPerSecond: 1e12, Latency: 20 * time.Microsecond}}))
}

// link connects two ranks under a plan.
func link(t *testing.T, c Config) (*transporttest.World, *transporttest.Link) {
	leak.VerifyNone(t)
	w := transporttest.NewWorld(t, 2, overInproc(c))
	return w, w.Connect(t, transporttest.NewConn(0, 0, 1, transporttest.Spec))
}

// What is under way for an hour has not arrived, and does not hold up the end.
func TestLatencyHoldsBack(t *testing.T) {
	w, l := link(t, Config{Link: Link{Latency: time.Hour}})
	require.NoError(t, l.SendSteps(transporttest.Context(t), 2))
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	require.ErrorIs(t, l.SendSide.Flush(ctx), goccl.ErrTimeout)
	require.False(t, l.Recv.Ready())
	require.NoError(t, l.SendSide.Err())
	require.NoError(t, w.Transports[0].Close())
}

func TestCut(t *testing.T) {
	_, l := link(t, Config{Faults: []Fault{{Kind: Cut, Step: 4}}})
	ctx := transporttest.Context(t)
	require.NoError(t, l.Pass(ctx, 4))
	require.NoError(t, l.SendSide.Err())
	require.NoError(t, l.SendSteps(ctx, 1))
	for _, broken := range []func() error{l.SendSide.Err, l.RecvSide.Err} {
		require.Eventually(t, func() bool { return broken() != nil }, transporttest.Watchdog, time.Millisecond)
		require.ErrorIs(t, broken(), goccl.ErrPeerLost)
	}
	require.ErrorContains(t, l.SendSide.Err(), "was cut")
	require.False(t, l.Recv.Ready())
}

func TestStall(t *testing.T) {
	_, l := link(t, Config{Faults: []Fault{{Kind: Stall, Step: 2}}})
	require.NoError(t, l.Pass(transporttest.Context(t), 2))
	// The pumps take some steps more, then the sender runs out of slots.
	posted := 0
	for begin := time.Now(); posted < 2*transporttest.Spec.Slots && time.Since(begin) < transporttest.Watchdog; {
		if l.Send.Ready() {
			l.Send.Post(8, 1)
			posted++
		}
	}
	require.Equal(t, 2*transporttest.Spec.Slots, posted)
	require.False(t, l.Recv.Ready())
	require.NoError(t, l.SendSide.Err())
	require.NoError(t, l.RecvSide.Err())
	require.False(t, l.Send.Ready())
}

func TestCorrupt(t *testing.T) {
	_, l := link(t, Config{Faults: []Fault{{Kind: Corrupt, Step: 5, Byte: 1000}}})
	ctx := transporttest.Context(t)
	require.NoError(t, l.Pass(ctx, 5))
	require.ErrorContains(t, l.Pass(ctx, 1), "differs")
}

func TestDelayKeepsOrder(t *testing.T) {
	_, l := link(t, Config{Faults: []Fault{{Kind: Delay, Step: 2, For: 300 * time.Microsecond}, {Kind: Delay, Step: 4, For: time.Microsecond}}})
	require.NoError(t, l.Pass(transporttest.Context(t), 12))
	require.NoError(t, l.SendSide.Close())
	require.ErrorIs(t, l.RecvSide.Err(), io.EOF)
}

func TestFaultsChooseConnections(t *testing.T) {
	leak.VerifyNone(t)
	only := func(c transport.Conn) bool { return c.Channel == 1 }
	w := transporttest.NewWorld(t, 2, overInproc(Config{Faults: []Fault{{Kind: Cut, On: only}}}))
	ctx := transporttest.Context(t)
	sound, cut := w.Connect(t, transporttest.NewConn(0, 0, 1, transporttest.Spec)), w.Connect(t, transporttest.NewConn(1, 0, 1, transporttest.Spec))
	require.ErrorIs(t, cut.Pass(ctx, 1), goccl.ErrPeerLost)
	require.NoError(t, sound.Pass(ctx, 10))
	w.Transports[0].(*Transport).mu.Lock()
	defer w.Transports[0].(*Transport).mu.Unlock()
	require.Len(t, w.Transports[0].(*Transport).wires, 1, "one link for the pair")
}

func TestKindString(t *testing.T) {
	names := map[Kind]string{Delay: "delay", Cut: "cut", Corrupt: "corrupt", Stall: "stall", 9: "fault(9)"}
	for kind, name := range names {
		require.Equal(t, name, kind.String())
	}
}
