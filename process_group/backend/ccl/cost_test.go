package ccl_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm"
	"github.com/goccl/goccl/comm/transport"
	"github.com/goccl/goccl/comm/transport/inproc"
	"github.com/goccl/goccl/device"
	processgroup "github.com/goccl/goccl/process_group"
	"github.com/goccl/goccl/process_group/backend/ccl"
)

// alternate makes two ranks for one goroutine, which starts on both before it
// waits on either: what remains is the work of a call without any waiting.
func alternate(b testing.TB) []*processgroup.Group {
	cs, err := comm.InitAll(context.Background(), 2, func(_ int, cfg *comm.Config) {
		cfg.Transports = []transport.Transport{inproc.New()}
		cfg.NoTimeout = true
	})
	require.NoError(b, err)
	var gs []*processgroup.Group
	for r, c := range cs {
		k := ccl.Wrap(c)
		gs = append(gs, processgroup.New(processgroup.Config{Name: "g", Rank: r, Size: 2, Backend: k, Control: k.Control()}))
	}
	b.Cleanup(func() {
		for _, g := range gs {
			go g.Close() //nolint:errcheck // the ranks close at once, as those of a job do
		}
		for _, g := range gs {
			require.NoError(b, g.Close())
		}
	})
	return gs
}

func twice(tb testing.TB, gs []*processgroup.Group, bufs [2]device.Buffer) {
	ctx := context.Background()
	w0 := gs[0].AllReduce(bufs[0], goccl.Max)
	w1 := gs[1].AllReduce(bufs[1], goccl.Max)
	if err := w0.Wait(ctx); err != nil {
		tb.Fatal(err)
	}
	if err := w1.Wait(ctx); err != nil {
		tb.Fatal(err)
	}
}

// BenchmarkCost is the work of an 8-byte AllReduce on two ranks, both by one
// goroutine: half of it is what a call costs besides waiting.
func BenchmarkCost(b *testing.B) {
	gs := alternate(b)
	bufs := [2]device.Buffer{device.SliceOf([]float32{1, 2}), device.SliceOf([]float32{3, 1})}
	b.ReportAllocs()
	for b.Loop() {
		twice(b, gs, bufs)
	}
}

// TestNoAllocation holds the hot path of groups to its promise.
func TestNoAllocation(t *testing.T) {
	gs := alternate(t)
	bufs := [2]device.Buffer{device.SliceOf([]float32{1, 2}), device.SliceOf([]float32{3, 1})}
	twice(t, gs, bufs)
	require.Zero(t, testing.AllocsPerRun(1000, func() { twice(t, gs, bufs) }))
}
