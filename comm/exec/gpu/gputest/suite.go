package gputest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/plan"
)

// Rounds is n, and more in nightly runs.
func Rounds(n int) int {
	if os.Getenv("GOCCL_NIGHTLY") != "" {
		return 30 * n
	}
	return n
}

// Suite runs what must hold on every machine. make returns a machine for n ranks.
func Suite(t *testing.T, ranks []int, make func(t *testing.T, n int) Machine) {
	for _, n := range ranks {
		t.Run(fmt.Sprintf("n=%d", n), func(t *testing.T) {
			for _, c := range []struct {
				name string
				f    func(w *World)
			}{{"equal", equal}, {"replay", replay}, {"lanes", lanes}, {"sequences", sequences}} {
				t.Run(c.name, func(t *testing.T) { c.f(New(t, Small(n), make(t, n))) })
			}
		})
	}
}

// equal runs every Program there is and holds its results against the host
// executor's, bit by bit, with several operations under way at a time in slots that
// are soon used again.
func equal(w *World) {
	rng := rand.New(rand.NewPCG(uint64(w.Layout.Ranks), 7))
	Cases(w.Layout, func(k plan.Key) {
		k.Channels = uint8(1 + rng.IntN(w.Layout.Channels))
		for _, elems := range Sizes(k) {
			o := Random(k, w.Layout.Ranks, w.Machine.Threads(), rng)
			o.Elems = elems
			w.Do(o, rng)
		}
		w.Run(rng.Uint64())
	})
}

// sequences mixes all Programs: what one leaves in regions and state is what the
// next one finds, and ranks are in different operations at a time.
func sequences(w *World) {
	var keys []plan.Key
	Cases(w.Layout, func(k plan.Key) { keys = append(keys, k) })
	for round := range Rounds(4) {
		rng := rand.New(rand.NewPCG(uint64(w.Layout.Ranks), uint64(round)))
		for range 25 {
			k := keys[rng.IntN(len(keys))]
			k.Channels = uint8(1 + rng.IntN(w.Layout.Channels))
			w.Do(Random(k, w.Layout.Ranks, w.Machine.Threads(), rng), rng)
		}
		w.Run(rng.Uint64())
	}
}

// replay queues the same launches again, as a captured graph does, between others.
func replay(w *World) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, p := range []goccl.Protocol{goccl.LL, goccl.Simple} {
		k := KeyOf(w.Layout, goccl.AllReduce, goccl.Ring, p, goccl.F32)
		w.Do(Op{Key: k, Elems: 700, InPlace: true, Repeat: 5}, rng)
		w.Do(Op{Key: KeyOf(w.Layout, goccl.AllReduce, goccl.OneShot, p, goccl.F32), Elems: 17}, rng)
		w.Run(5)
	}
}

// lanes runs two lanes of a channel in slices.
func lanes(w *World) {
	n := w.Layout.Ranks
	w.Build = func(k plan.Key, rank int) *plan.Program { return TwoLanes(k, rank, n) }
	rng := rand.New(rand.NewPCG(8, 9))
	for _, p := range []goccl.Protocol{goccl.LL, goccl.Simple} {
		k := KeyOf(w.Layout, goccl.AllReduce, goccl.Ring, p, goccl.F32)
		k.Op = goccl.Max // moves only: any operation will do
		for _, elems := range []int{0, 1, 255, 256, 257, 3000} {
			for _, threads := range w.Machine.Threads() {
				w.Do(Op{Key: k, Elems: elems, Threads: threads}, rng)
			}
		}
		w.Run(rng.Uint64())
	}
}
