package gpu_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/exec/gpu"
	"github.com/goccl/goccl/comm/exec/gpu/gputest"
	"github.com/goccl/goccl/comm/plan"
)

func newWorld(t testing.TB, n int) (*gputest.World, *emulator) {
	e := newEmulator(t, n)
	return gputest.New(t, gputest.Small(n), e), e
}

// TestEmulated holds the kernels, run by the emulator, against the host executor.
func TestEmulated(t *testing.T) {
	needCompiler(t)
	gputest.Suite(t, []int{2, 3, 4}, func(t *testing.T, n int) gputest.Machine { return newEmulator(t, n) })
}

// TestFlagsRepeat runs LL until its flags have repeated several times, with lines
// that are not written for long.
func TestFlagsRepeat(t *testing.T) {
	for _, n := range []int{2, 3} {
		w, _ := newWorld(t, n)
		w.Bind = func(r *gpu.Rank, p *plan.Program) (*gpu.Bound, error) { return r.BindMask(p, 15, p.Rank == 0) }
		for round := range gputest.Rounds(2) {
			rng := rand.New(rand.NewPCG(uint64(n), uint64(round)))
			for i := range 80 {
				k := gputest.KeyOf(w.Layout, goccl.AllReduce, []goccl.Algorithm{goccl.OneShot, goccl.Ring}[i%2], goccl.LL, goccl.F32)
				k.Channels = 1
				w.Do(gputest.Op{Key: k, Elems: []int{1, 2, 120, 30}[rng.IntN(4)], PlainBits: true}, rng)
			}
			w.Run(rng.Uint64())
		}
	}
}

// TestFused lets some ranks interpret one-shot Programs and others run fused kernels,
// in turn: all have the host's bits, and each finds what the other left.
func TestFused(t *testing.T) {
	for _, n := range []int{2, 3, 4} {
		w, e := newWorld(t, n)
		fused := 0
		turn := 0
		w.Bind = func(r *gpu.Rank, p *plan.Program) (*gpu.Bound, error) {
			b, err := r.BindMask(p, gpu.FlagMask, (p.Rank+turn)%3 != 0)
			if err == nil && b.Fused() {
				fused++
			}
			return b, err
		}
		rng := rand.New(rand.NewPCG(uint64(n), 17))
		for range gputest.Rounds(1) {
			gputest.Cases(w.Layout, func(k plan.Key) {
				if k.Algo != goccl.OneShot || k.Proto != goccl.LL {
					return
				}
				for _, elems := range gputest.Sizes(k) {
					k.Channels = uint8(1 + rng.IntN(w.Layout.Channels))
					o := gputest.Random(k, n, e.Threads(), rng)
					o.Elems = elems
					turn++
					w.Do(o, rng)
				}
				w.Run(rng.Uint64())
			})
		}
		require.Greater(t, fused, 10)
	}
}

// TestWhatIsFused looks at which Programs are.
func TestWhatIsFused(t *testing.T) {
	for _, n := range []int{2, 3, 8, 9} {
		w, _ := newWorld(t, n)
		gputest.Cases(w.Layout, func(k plan.Key) {
			b, err := w.Ranks[1].Bind(w.Build(k, 1))
			if k.Coll == goccl.SendRecv {
				return // its key says more
			}
			require.NoError(t, err)
			require.Equal(t, n <= 8 && k.Algo == goccl.OneShot && k.Proto == goccl.LL, b.Fused(), "%v on %d ranks", k, n)
		})
	}
	// A body that differs in what it reads is none of those.
	w, _ := newWorld(t, 3)
	for what, change := range map[string]func(p *plan.Program){
		"another order": func(p *plan.Program) {
			p.Opnds[p.Code[1].Src], p.Opnds[p.Code[1].Src+2] = p.Opnds[p.Code[1].Src+2], p.Opnds[p.Code[1].Src]
		},
		"one source twice":  func(p *plan.Program) { p.Opnds[p.Code[1].Src] = p.Opnds[p.Code[1].Src+2] },
		"one peer twice":    func(p *plan.Program) { p.Opnds[p.Code[0].Dst] = p.Opnds[p.Code[0].Dst+1] },
		"scaled later only": func(p *plan.Program) { p.Code[0].Flags &^= plan.Pre },
		"in slices":         func(p *plan.Program) { p.Geom.Slices = 2 },
	} {
		p := w.Build(gputest.KeyOf(w.Layout, goccl.AllReduce, goccl.OneShot, goccl.LL, goccl.F32), 1)
		change(p)
		b, err := w.Ranks[1].Bind(p)
		require.NoError(t, err, what)
		require.False(t, b.Fused(), what)
	}
}

// abortInTheMiddle ends an operation on two ranks, first on one of them, and reports
// how many have not done it. The kernels come to their ends; a rank whose state has
// advanced has the right result; the others' state is as it was.
func abortInTheMiddle(t testing.TB, w *gputest.World, e *emulator, k plan.Key, rng *rand.Rand) (ended int) {
	t.Helper()
	k.Channels = 1 // channels end each for itself
	state := func(r int) string {
		addr, n := w.Ranks[r].State()
		b := make([]byte, n)
		e.Read(r, addr, b)
		return string(b)
	}
	before := []string{state(0), state(1)}
	o := gputest.Random(k, 2, e.Threads(), rng)
	sizes := gputest.Sizes(k)
	o.From, o.To, o.Elems = 0, 1, sizes[len(sizes)-1]
	w.Do(o, rng)
	if rng.IntN(3) == 0 { // one rank never comes
		e.streams[1].queue = nil
	}
	e.abortAfter, e.most = 1+rng.Uint64N(20_000), 4_000_000
	require.NoError(t, e.Run(rng.Uint64()), "%v", o)
	for r := range w.Ranks {
		require.Zero(t, w.Ranks[r].Fault())
		if state(r) == before[r] {
			ended++
			w.Unsure[r] = true // its output is anything
		}
	}
	w.Check()
	return ended
}

func TestAbort(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	ended := 0
	for range gputest.Rounds(1) {
		gputest.Cases(gputest.Small(2), func(k plan.Key) {
			w, e := newWorld(t, 2)
			ended += abortInTheMiddle(t, w, e, k, rng)
		})
	}
	require.Greater(t, ended, 5, "operations that were ended in the middle")
}

// TestPlaceOutsideWindows lets a rank tell a place that is in no window: its peers
// give up and say so.
func TestPlaceOutsideWindows(t *testing.T) {
	w, e := newWorld(t, 2)
	k := gputest.KeyOf(w.Layout, goccl.AllReduce, goccl.TwoShot, goccl.Simple, goccl.F32)
	k.Window = plan.WindowBoth
	w.Do(gputest.Op{Key: k, Elems: 100}, rand.New(rand.NewPCG(1, 1)))
	require.NoError(t, w.Ranks[0].SetWindow(1, make([]uintptr, 2), 300))
	e.abortAfter = 100_000
	require.NoError(t, e.Run(1))
	require.ErrorIs(t, w.Ranks[0].Err(), goccl.ErrMismatch)
	require.NoError(t, w.Ranks[1].Err())
	w.Unsure[0], w.Unsure[1] = true, true
	w.Check()
}

// TestOneRank runs what a communicator of one rank does: copies.
func TestOneRank(t *testing.T) {
	e := newEmulator(t, 1)
	w := gputest.New(t, gpu.DefaultLayout(1, 132), e)
	rng := rand.New(rand.NewPCG(1, 1))
	for _, p := range []goccl.Protocol{goccl.LL, goccl.Simple} {
		for _, elems := range []int{0, 1, 1000} {
			k := gputest.KeyOf(w.Layout, goccl.AllReduce, goccl.Ring, p, goccl.F32)
			k.Chunk = 1024
			w.Do(gputest.Op{Key: k, Elems: elems, Threads: 20}, rng)
		}
	}
	w.Run(1)
}
