package gputest

import (
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/exec"
	"github.com/goccl/goccl/comm/exec/gpu"
	"github.com/goccl/goccl/comm/graph"
	"github.com/goccl/goccl/comm/plan"
	"github.com/goccl/goccl/comm/transport"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/internal/shmem"
)

// hosts is n host executors that share memory: what a kernel must equal.
type hosts struct {
	t     testing.TB
	execs []*exec.Exec
	fifos map[hostFIFO]shmem.Mem
	spec  transport.FIFOSpec
	spans [][2]uintptr // windows by rank: the whole address space
}

type hostFIFO struct {
	src, dst, channel int
	index             uint8
	proto             goccl.Protocol
}

// newHosts makes the executors of the ranks of l, with slots for its chunks.
func newHosts(t testing.TB, l gpu.Layout) *hosts {
	n := l.Ranks
	h := &hosts{t: t, fifos: map[hostFIFO]shmem.Mem{}, spec: transport.FIFOSpec{Slots: 4, SlotBytes: max(l.LL, l.Simple, 4<<10)}}
	layout := exec.Layout{Ranks: n, SlotBytes: exec.ScratchSlot(n)}
	var regions []shmem.Mem
	var bells []*atomic.Uint64
	for range n {
		m := h.private(layout.Bytes())
		regions, bells = append(regions, m), append(bells, exec.Bell(m))
	}
	for r := range n {
		h.execs = append(h.execs, exec.New(exec.Config{Rank: r, Size: n, Layout: layout, Regions: regions, Bells: bells, Windows: h}))
	}
	h.spans = make([][2]uintptr, n)
	return h
}

// Mapped returns the graph of n ranks that map each other's memory.
func Mapped(t testing.TB, n int) *graph.Graph {
	places := make([]graph.Place, n)
	for i := range places {
		places[i].Mapped = true
	}
	g, err := graph.New(places)
	require.NoError(t, err)
	return g
}

func (h *hosts) private(n int) shmem.Mem {
	m, err := shmem.Private(n)
	require.NoError(h.t, err)
	return m
}

// Base implements exec.Windows: window 2r is rank r's input, 2r+1 its output.
func (h *hosts) Base(window uint32, peer int) (uintptr, int64) {
	return h.spans[peer][window&1], 1 << 40
}

type hostEnds struct {
	h    *hosts
	rank int
}

func (e hostEnds) fifo(k hostFIFO) shmem.Mem {
	if _, ok := e.h.fifos[k]; !ok {
		e.h.fifos[k] = e.h.private(e.h.spec.Bytes())
	}
	return e.h.fifos[k]
}

func (e hostEnds) Send(c plan.Conn, ch int) (*transport.Send, error) {
	return transport.NewSend(e.fifo(hostFIFO{e.rank, int(c.Peer), ch, c.Index, c.Proto}), e.h.spec, nil), nil
}

func (e hostEnds) Recv(c plan.Conn, ch int) (*transport.Recv, error) {
	return transport.NewRecv(e.fifo(hostFIFO{int(c.Peer), e.rank, ch, c.Index, c.Proto}), e.h.spec, nil), nil
}

// run runs one operation on all ranks: key and buffers by rank. The buffers hold
// the results afterwards.
func (h *hosts) run(build func(plan.Key, int) *plan.Program, keys []plan.Key, in, out [][]byte, unit int64, scale float32, scaled bool) {
	clear(h.fifos) // every operation begins anew
	runs := make([]exec.Run, len(h.execs))
	open := 0
	for r := range runs {
		if keys[r].Coll == 0 {
			continue // takes no part
		}
		b, err := exec.Bind(build(keys[r], r), hostEnds{h, r})
		require.NoError(h.t, err)
		a := exec.Args{In: address(in[r]), Out: address(out[r]), Unit: unit, Sig: 1, Scale: scale, Scaled: scaled}
		h.spans[r] = [2]uintptr{a.In, a.Out}
		a.InAt, a.OutAt = exec.Place{Window: 2}, exec.Place{Window: 3}
		require.NoError(h.t, runs[r].Begin(h.execs[r], b, a))
		open |= 1 << r
	}
	for turns := 0; open != 0; turns++ {
		require.Less(h.t, turns, 1_000_000, "the host executor is stuck")
		for r := range runs {
			if open>>r&1 == 0 {
				continue
			}
			done, _, err := runs[r].Step()
			require.NoError(h.t, err)
			if done {
				open &^= 1 << r
			}
		}
	}
	runtime.KeepAlive(in)
	runtime.KeepAlive(out)
}

func address(b []byte) uintptr {
	if len(b) == 0 {
		return 0
	}
	return device.SliceOf(b).Addr
}
