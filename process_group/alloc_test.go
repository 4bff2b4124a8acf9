package processgroup_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	processgroup "github.com/goccl/goccl/process_group"
	"github.com/goccl/goccl/process_group/backend/fake"
)

func immediate(t testing.TB) *processgroup.Group {
	g := processgroup.New(processgroup.Config{Name: "fake", Size: 2, Backend: fake.Immediate()})
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	return g
}

func TestCallsDoNotAllocate(t *testing.T) {
	g := immediate(t)
	ctx := context.Background()
	b := device.SliceOf(make([]float32, 2))
	big := device.SliceOf(make([]float32, 4))
	list := []device.Buffer{device.SliceOf(make([]float32, 2)), device.SliceOf(make([]float32, 2))}
	batch := []processgroup.P2P{{Buf: b, Peer: 1}, {Buf: big, Peer: 1, Recv: true}}
	counts := []int{1, 1}
	calls := map[string]func() processgroup.Work{
		"allreduce":     func() processgroup.Work { return g.AllReduce(b, goccl.Sum) },
		"labelled":      func() processgroup.Work { return g.AllReduce(b, goccl.Avg, processgroup.Label("x")) },
		"view":          func() processgroup.Work { return g.On(nil).AllReduce(b, goccl.Sum) },
		"reducescatter": func() processgroup.Work { return g.ReduceScatter(b, big, goccl.Sum) },
		"allgather":     func() processgroup.Work { return g.AllGather(list, b) },
		"alltoallv":     func() processgroup.Work { return g.AllToAllV(list[0], b, counts, counts) },
		"send":          func() processgroup.Work { return g.Send(b, 1, processgroup.Tag(3)) },
		"batch":         func() processgroup.Work { return g.BatchSendRecv(batch) },
	}
	for name, call := range calls {
		require.NoError(t, call().Wait(ctx), name)
		require.Zero(t, testing.AllocsPerRun(200, func() { _ = call().Wait(ctx) }), name)
	}
}

func BenchmarkAllReduce(b *testing.B) {
	g := immediate(b)
	ctx := context.Background()
	buf := device.SliceOf(make([]float32, 2))
	b.ReportAllocs()
	for b.Loop() {
		_ = g.AllReduce(buf, goccl.Sum).Wait(ctx)
	}
}
