package transport_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/goccl/goccl/comm/transport"
	"github.com/goccl/goccl/comm/transport/transporttest"
	"github.com/goccl/goccl/internal/shmem"
)

func newFIFO(t require.TestingT, spec transport.FIFOSpec) (*transport.Send, *transport.Recv) {
	require.NoError(t, spec.Check())
	m, err := shmem.Private(spec.Bytes())
	require.NoError(t, err)
	return transport.NewSend(m, spec, nil), transport.NewRecv(m, spec, nil)
}

// message is what a model of the FIFO, a plain list, holds for each step.
type message struct {
	n   int
	sig uint32
}

func TestFIFOEqualsAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := transport.FIFOSpec{
			Slots:     rapid.IntRange(2, 9).Draw(t, "slots"),
			SlotBytes: 64 * rapid.IntRange(1, 5).Draw(t, "lines"),
			Inline:    rapid.Bool().Draw(t, "inline"),
		}
		send, recv := newFIFO(t, spec)
		conn := transporttest.NewConn(0, 0, 1, spec)
		var queue []message
		posted, released := uint64(0), uint64(0)
		for range rapid.IntRange(1, 60).Draw(t, "turns") {
			require.Equal(t, len(queue) < spec.Slots, send.Ready())
			require.Equal(t, len(queue) > 0, recv.Ready())
			require.Equal(t, len(queue) == 0, send.Drained())
			if send.Ready() && rapid.Bool().Draw(t, "post") {
				m := message{rapid.IntRange(0, spec.SlotBytes).Draw(t, "bytes"), rapid.Uint32().Draw(t, "sig")}
				transporttest.Fill(send.Payload(), m.n, conn, posted)
				send.Post(m.n, m.sig)
				queue = append(queue, m)
				posted++
			}
			if len(queue) > 0 && rapid.Bool().Draw(t, "take") {
				require.True(t, recv.Ready())
				addr, n, sig := recv.Peek()
				require.Equal(t, queue[0], message{n, sig})
				require.Equal(t, -1, transporttest.Same(addr, n, conn, released))
				recv.Release()
				queue = queue[1:]
				released++
			}
			require.Equal(t, posted, send.Step())
			require.Equal(t, released, recv.Step())
		}
	})
}

// No two slots share a byte, and a slot shares none with the head and the bells.
func TestFIFOSlotsAreDisjoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := transport.FIFOSpec{Slots: rapid.IntRange(2, 9).Draw(t, "slots"), SlotBytes: 64 * rapid.IntRange(1, 5).Draw(t, "lines"),
			Inline: rapid.Bool().Draw(t, "inline")}
		m, err := shmem.Private(spec.Bytes())
		require.NoError(t, err)
		send, recv := transport.NewSend(m, spec, nil), transport.NewRecv(m, spec, nil)
		last := m.Addr(128)
		for range spec.Slots {
			addr := send.Payload()
			require.GreaterOrEqual(t, addr, last+16, "flag and meta stand before the payload")
			last = addr + uintptr(spec.SlotBytes)
			require.LessOrEqual(t, last, m.Addr(0)+uintptr(m.Len()))
			require.Equal(t, !spec.Inline, addr%64 == 0)
			send.Post(0, 0)
		}
		require.Zero(t, send.Bell().Load()|send.CreditBell().Load())
		require.Same(t, send.Bell(), recv.Bell())
		require.Same(t, send.CreditBell(), recv.CreditBell())
	})
}

func TestFIFOHooks(t *testing.T) {
	spec := transporttest.Spec
	m, err := shmem.Private(spec.Bytes())
	require.NoError(t, err)
	rung, freed := 0, 0
	send := transport.NewSend(m, spec, func() { rung++ })
	recv := transport.NewRecv(m, spec, func() { freed++ })
	send.Post(1, 0)
	require.Zero(t, rung, "nobody sleeps")
	recv.Bell().Store(1)
	send.Post(1, 0)
	require.Equal(t, 1, rung)
	recv.Release()
	recv.Release()
	require.Equal(t, 2, freed)

	// Without hooks a bell is a spin word, which a ring clears.
	send, recv = transport.NewSend(m, spec, nil), transport.NewRecv(m, spec, nil)
	recv.Bell().Store(1)
	send.CreditBell().Store(1)
	send.Post(1, 0)
	recv.Release()
	require.Zero(t, recv.Bell().Load())
	require.Zero(t, send.CreditBell().Load())
}

// A peer that writes a wrong length cannot make this side read past the slot.
func TestFIFOLengthIsBounded(t *testing.T) {
	send, recv := newFIFO(t, transporttest.Spec)
	send.Post(1<<31, 5)
	require.True(t, recv.Ready())
	_, n, sig := recv.Peek()
	require.Equal(t, transporttest.Spec.SlotBytes, n)
	require.Equal(t, uint32(5), sig)
}

func TestFIFOSpecCheck(t *testing.T) {
	for _, bad := range []transport.FIFOSpec{{}, {Slots: 1, SlotBytes: 64}, {Slots: 2, SlotBytes: 63}, {Slots: 2, SlotBytes: 2 << 30}, {Slots: -2, SlotBytes: 64}} {
		require.Error(t, bad.Check(), "%+v", bad)
	}
}

func TestFIFODoesNotAllocate(t *testing.T) {
	send, recv := newFIFO(t, transport.FIFOSpec{Slots: 3, SlotBytes: 64, Inline: true})
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		for !send.Ready() {
			t.Error("not ready")
		}
		send.Post(8, 1)
		if _, n, _ := recv.Peek(); !recv.Ready() || n != 8 {
			t.Error("not received")
		}
		recv.Release()
	}))
}

func BenchmarkFIFO(b *testing.B) {
	send, recv := newFIFO(b, transport.FIFOSpec{Slots: 8, SlotBytes: 64, Inline: true})
	for range b.N {
		if send.Ready() {
			send.Post(8, 1)
		}
		if recv.Ready() {
			recv.Peek()
			recv.Release()
		}
	}
}
