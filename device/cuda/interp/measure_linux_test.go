package interp

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/exec"
	"github.com/goccl/goccl/comm/exec/gpu"
	"github.com/goccl/goccl/comm/exec/gpu/gputest"
	"github.com/goccl/goccl/comm/plan"
	"github.com/goccl/goccl/comm/plan/algo"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/device/cuda"
)

// The figures of the interpreter, on two GPUs of one process:
//
//	go test -run TestGPUMeasure ./device/cuda/interp -measure all -v
//
// decode is the time of one instruction; small and large are all-reduces; brief is a
// few of all, in seconds.
var measure = flag.String("measure", "", "measure decode, small, large, others, all or brief")

// bench is two ranks with buffers of the largest size.
type bench struct {
	t       testing.TB
	m       *machine
	layout  gpu.Layout
	ranks   []*gpu.Rank
	buffers [][2]device.Memory
	timers  [][2]*cuda.Event
}

const (
	trials  = 3
	largest = 1 << 30
)

// wide is a layout with room for every chunk that is measured.
func wide(n int) gpu.Layout {
	return gpu.Layout{Ranks: n, Channels: 132, Slots: 4, LL: 16 << 10, Simple: 512 << 10, ScratchLL: 16 << 10, ScratchSimple: 512}
}

func newBench(t testing.TB, l gpu.Layout, bytes int, indices ...int) *bench {
	b := &bench{t: t, m: newMachine(t, indices...), layout: l}
	handles := make([][]byte, l.Ranks)
	for r := range l.Ranks {
		k, err := gpu.New(gpu.Config{Rank: r, Layout: l, Device: b.m.ours[r]})
		require.NoError(t, err)
		b.ranks = append(b.ranks, k)
		handles[r] = k.Handle()
		var mems [2]device.Memory
		var timers [2]*cuda.Event
		for i := range mems {
			mems[i], err = b.m.devs[r].Alloc(bytes)
			require.NoError(t, err)
			timers[i], err = b.m.devs[r].NewTimer()
			require.NoError(t, err)
		}
		b.buffers, b.timers = append(b.buffers, mems), append(b.timers, timers)
		t.Cleanup(func() {
			for i := range mems {
				require.NoError(t, mems[i].Free())
				timers[i].Release()
			}
			require.NoError(t, k.Close())
		})
	}
	addrs := [2][]uintptr{}
	for r, k := range b.ranks {
		require.NoError(t, k.Map(handles))
		addrs[0], addrs[1] = append(addrs[0], b.buffers[r][0].Addr()), append(addrs[1], b.buffers[r][1].Addr())
	}
	t.Cleanup(func() {
		if t.Failed() { // kernels may hang
			for _, k := range b.ranks {
				k.Abort()
			}
			_ = b.m.Run(0)
		}
	})
	for _, k := range b.ranks { // window 0 is the inputs, 1 the outputs
		for id := range addrs {
			require.NoError(t, k.SetWindow(uint32(id), addrs[id], int64(bytes)))
		}
	}
	return b
}

// bind binds the Program of k on all ranks; nil when there is none.
func (b *bench) bind(k plan.Key) []*gpu.Bound {
	b.t.Helper()
	var bs []*gpu.Bound
	for r, rank := range b.ranks {
		k := k
		if k.Coll == goccl.SendRecv {
			k.Send, k.Root = r == 0, int32(1-r)
		}
		p, err := algo.Build(k, r, gputest.Mapped(b.t, b.layout.Ranks))
		require.NoError(b.t, err)
		x, err := rank.Bind(p)
		require.NoError(b.t, err)
		bs = append(bs, x)
	}
	return bs
}

// each calls f for every rank.
func (b *bench) each(f func(r int) error) {
	b.t.Helper()
	for r := range b.ranks {
		require.NoError(b.t, f(r))
	}
}

// time returns the time of one of many operations: launched one by one, and replayed
// in a graph of several. The slower rank, median of trials.
func (b *bench) time(bs []*gpu.Bound, unit int64) (eager, graph time.Duration) {
	b.t.Helper()
	launch := func(r, n int) error {
		a := exec.Args{In: b.buffers[r][0].Addr(), Out: b.buffers[r][1].Addr(), Unit: unit, InAt: exec.Place{Window: 0}, OutAt: exec.Place{Window: 1}}
		for range n {
			if err := bs[r].Launch(&a, b.m.streams[r]); err != nil {
				return err
			}
		}
		return nil
	}
	ops, replays := 20, 10
	switch {
	case unit >= 256<<20:
		ops, replays = 4, 1
	case unit >= 16<<20:
		ops, replays = 10, 2
	}
	// The first launches make the launches ready, which may wait for the device.
	for range 2 {
		b.each(func(r int) error { return launch(r, 1) })
		require.NoError(b.t, b.m.Run(0))
	}
	var graphs []*cuda.Executable
	b.each(func(r int) error {
		g, err := b.m.streams[r].Capture(func() error { return launch(r, ops) })
		require.NoError(b.t, err)
		x, err := g.Instantiate()
		require.NoError(b.t, err)
		graphs = append(graphs, x)
		return g.Close()
	})
	defer func() {
		for _, x := range graphs {
			require.NoError(b.t, x.Close())
		}
	}()
	eager = b.median(ops, func(r int) error { return launch(r, 1) }) / time.Duration(ops)
	graph = b.median(replays, func(r int) error { return b.m.replay(r, graphs[r]) }) / time.Duration(ops*replays)
	return eager, graph
}

// median times what queue queues, times over, on the ranks in turn.
func (b *bench) median(times int, queue func(r int) error) time.Duration {
	b.t.Helper()
	var all []time.Duration
	for range trials + 1 { // the first one warms up
		mark := func(r, i int) error {
			sec, err := b.m.streams[r].Enter()
			if err != nil {
				return err
			}
			defer sec.Leave()
			return sec.RecordTo(b.timers[r][i])
		}
		b.each(func(r int) error { return mark(r, 0) })
		for range times {
			b.each(queue)
		}
		b.each(func(r int) error { return mark(r, 1) })
		require.NoError(b.t, b.m.Run(0))
		slowest := time.Duration(0)
		b.each(func(r int) error {
			d, err := b.timers[r][1].Elapsed(b.timers[r][0])
			slowest = max(slowest, d)
			return err
		})
		all = append(all, slowest)
	}
	all = all[1:]
	slices.Sort(all)
	return all[len(all)/2]
}

func (b *bench) row(name string, bs []*gpu.Bound, bytes, unit int64, factor float64) {
	b.t.Helper()
	eager, graph := b.time(bs, unit)
	fmt.Printf("%-42s %12d B  eager %9.2f us  graph %9.2f us  busbw %6.1f GB/s\n", name, bytes, micro(eager), micro(graph), factor*float64(bytes)/float64(graph.Nanoseconds()))
}

func micro(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

func wants(what string) bool { return *measure == "all" || *measure == what }

func TestGPUMeasure(t *testing.T) {
	if *measure == "" {
		t.Skip("-measure says what")
	}
	if wants("decode") || *measure == "brief" {
		t.Run("decode", func(t *testing.T) { measureDecode(t) })
	}
	if *measure == "brief" {
		t.Run("brief", func(t *testing.T) { measureBrief(newBench(t, wide(2), 256<<20, 0, 1)) })
	}
	for _, what := range []struct {
		name string
		f    func(b *bench)
	}{{"small", measureSmall}, {"large", measureLarge}, {"others", measureOthers}} {
		if wants(what.name) {
			t.Run(what.name, func(t *testing.T) { what.f(newBench(t, wide(2), largest, 0, 1)) })
		}
	}
}

// measureDecode times a copy within one rank in chunks of one grain: nearly nothing
// but decoding, and for Simple two barriers.
func measureDecode(t *testing.T) {
	l := gpu.DefaultLayout(1, 132)
	b := newBench(t, l, 8<<20, 0)
	for _, p := range []goccl.Protocol{goccl.LL, goccl.Simple} {
		k := gputest.KeyOf(l, goccl.AllReduce, goccl.Ring, p, goccl.F32)
		k.Chunk = uint32(algo.Grain(p))
		bs := b.bind(k)
		for _, threads := range []int{64, 128, 256, 512} {
			require.NoError(t, bs[0].SetThreads(threads))
			_, few := b.time(bs, 64*int64(k.Chunk))
			_, many := b.time(bs, 1088*int64(k.Chunk))
			fmt.Printf("decode %-7v %4d threads: %7.3f us a move and its loop, launch and start %6.2f us\n", p, threads, micro(many-few)/1024, micro(few)-micro(many-few)/16)
		}
	}
}

func (b *bench) allReduce(a goccl.Algorithm, p goccl.Protocol, d goccl.DType, channels int, chunk int, window bool) []*gpu.Bound {
	k := plan.Key{Coll: goccl.AllReduce, Algo: a, Proto: p, DType: d, Channels: uint8(channels), Chunk: uint32(chunk)}
	if window {
		k.Window, k.Chunk = plan.WindowBoth, 1<<30
	}
	return b.bind(k)
}

// measureBrief shows whether a change of the kernels was one for the better.
func measureBrief(b *bench) {
	one := b.allReduce(goccl.OneShot, goccl.LL, goccl.F32, 1, 16<<10, false)
	for _, threads := range []int{64, 128, 256, 512} {
		for _, x := range one {
			require.NoError(b.t, x.SetThreads(threads))
		}
		b.row(fmt.Sprintf("one-shot LL f32 g1 x %d, fused", threads), one, 8, 8, 1)
	}
	b.row("ring LL f32 g1, interpreted", b.allReduce(goccl.Ring, goccl.LL, goccl.F32, 1, 8<<10, false), 8, 8, 1)
	for bytes := int64(16 << 10); bytes <= 1<<20; bytes *= 4 {
		channels := int(min(bytes/(2<<10), 128))
		b.row(fmt.Sprintf("one-shot LL f32 g%d, fused", channels), b.allReduce(goccl.OneShot, goccl.LL, goccl.F32, channels, 16<<10, false), bytes, bytes, 1)
	}
	for _, channels := range []int{8, 16, 32, 64, 128} {
		b.row(fmt.Sprintf("ring Simple f32 g%d chunk 120K", channels), b.allReduce(goccl.Ring, goccl.Simple, goccl.F32, channels, 120<<10, false), 256<<20, 256<<20, 1)
	}
}

func measureSmall(b *bench) {
	one := b.allReduce(goccl.OneShot, goccl.LL, goccl.F32, 1, 16<<10, false)
	for _, threads := range []int{32, 64, 128, 256, 512} {
		for _, x := range one {
			require.NoError(b.t, x.SetThreads(threads))
		}
		b.row(fmt.Sprintf("one-shot LL f32 g1 x %d", threads), one, 8, 8, 1)
	}
	for _, channels := range []int{1, 2, 4, 8, 16, 32, 64, 128} {
		bs := b.allReduce(goccl.OneShot, goccl.LL, goccl.F32, channels, 16<<10, false)
		for bytes := int64(8); bytes <= 1<<20 && bytes <= int64(channels)*16<<10; bytes *= 4 {
			if bytes >= int64(channels)*64 || channels == 1 {
				b.row(fmt.Sprintf("one-shot LL f32 g%d", channels), bs, bytes, bytes, 1)
			}
		}
	}
	for _, a := range []goccl.Algorithm{goccl.Ring, goccl.TwoShot} {
		for _, channels := range []int{1, 8, 32, 128} {
			bs := b.allReduce(a, goccl.LL, goccl.F32, channels, 16<<10, false)
			for bytes := int64(1 << 10); bytes <= 4<<20; bytes *= 16 {
				b.row(fmt.Sprintf("%v LL f32 g%d", a, channels), bs, bytes, bytes, 1)
			}
		}
	}
	bs := b.allReduce(goccl.OneShot, goccl.LL, goccl.BF16, 8, 16<<10, false)
	for _, bytes := range []int64{1 << 10, 64 << 10} {
		b.row("one-shot LL bf16 g8", bs, bytes, bytes, 1)
	}
}

func measureLarge(b *bench) {
	sizes := []int64{1 << 20, 16 << 20, 64 << 20, 256 << 20, 1 << 30}
	for _, a := range []goccl.Algorithm{goccl.Ring, goccl.TwoShot} {
		for _, channels := range []int{8, 16, 24, 32, 64, 128} {
			for _, chunk := range []int{60 << 10, 64 << 10, 120 << 10, 240 << 10, 512 << 10} {
				bs := b.allReduce(a, goccl.Simple, goccl.F32, channels, chunk, false)
				for _, bytes := range sizes {
					if bytes == 256<<20 || chunk == 120<<10 {
						b.row(fmt.Sprintf("%v Simple f32 g%d chunk %dK", a, channels, chunk>>10), bs, bytes, bytes, 1)
					}
				}
			}
		}
	}
	for _, channels := range []int{8, 16, 24, 32, 64, 128} {
		bs := b.allReduce(goccl.TwoShot, goccl.Simple, goccl.F32, channels, 0, true)
		for _, bytes := range sizes {
			b.row(fmt.Sprintf("two-shot window f32 g%d", channels), bs, bytes, bytes, 1)
		}
	}
	for _, channels := range []int{24, 64} {
		bs := b.allReduce(goccl.Ring, goccl.Simple, goccl.BF16, channels, 120<<10, false)
		for _, bytes := range []int64{16 << 20, 256 << 20} {
			b.row(fmt.Sprintf("ring Simple bf16 g%d chunk 120K", channels), bs, bytes, bytes, 1)
		}
	}
}

func measureOthers(b *bench) {
	for _, x := range []struct {
		c goccl.Collective
		a goccl.Algorithm
	}{{goccl.AllGather, goccl.Ring}, {goccl.AllGather, goccl.Direct}, {goccl.ReduceScatter, goccl.Ring}, {goccl.ReduceScatter, goccl.Direct},
		{goccl.Broadcast, goccl.Ring}, {goccl.Reduce, goccl.Ring}, {goccl.AllToAll, goccl.Direct}, {goccl.SendRecv, goccl.Direct}} {
		for _, channels := range []int{8, 24, 64} {
			bs := b.bind(plan.Key{Coll: x.c, Algo: x.a, Proto: goccl.Simple, DType: goccl.F32, Channels: uint8(channels), Chunk: 120 << 10})
			for _, bytes := range []int64{1 << 20, 16 << 20, 256 << 20} {
				unit, factor := bytes, 1.0
				if plan.BaseOf(x.c) == plan.PerRank {
					unit, factor = bytes/2, 0.5
				}
				b.row(fmt.Sprintf("%v %v Simple f32 g%d", x.c, x.a, channels), bs, bytes, unit, factor)
			}
		}
	}
}
