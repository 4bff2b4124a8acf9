package check

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/plan"
)

// nightly runs the long products.
func nightly() bool { return os.Getenv("GOCCL_NIGHTLY") == "1" }

// ranksOf are the rank counts of the product. Short runs, under the race
// detector, take few: the checker has no goroutines.
func ranksOf() []int {
	if testing.Short() {
		return []int{1, 2, 3, 5, 8, 24}
	}
	return []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 24, 32, 33, 64, 65}
}

// TestBuilders checks every builder, collective, alias mode and root over 1 to 17
// ranks and some more. The small ones get all sizes; protocols, channels and
// layouts of hosts take turns, except at night.
func TestBuilders(t *testing.T) {
	for i, b := range bodies() {
		t.Run(b.String(), func(t *testing.T) {
			t.Parallel()
			turn := i
			configs, models, steps := 0, 0, 0
			for _, n := range ranksOf() {
				for _, v := range variants(b, n, &turn) {
					rep, err := Survey(build(t, v.key, shape(t, n, v.hosts, v.mapped)), v.options(n))
					require.NoError(t, err, "%v over %d ranks on %d hosts, mapped %v", v.key, n, v.hosts, v.mapped)
					configs, models, steps = configs+1, models+rep.Models, steps+rep.Steps
				}
			}
			t.Logf("%d configurations, %d runs, %d steps", configs, models, steps)
		})
	}
}

// variant is one way to build a body.
type variant struct {
	key    plan.Key
	hosts  int
	mapped bool
}

// options limits what large worlds cost: above 17 ranks one iteration cut
// unevenly, and a full one with an element more.
func (v variant) options(n int) Options {
	if n <= 17 || nightly() {
		return Options{Thin: n > 4 && !nightly() || n > 17}
	}
	d := int64(1)
	if v.key.Coll == goccl.AllReduce && (v.key.Algo == goccl.Ring || v.key.Algo == goccl.TwoShot) {
		d = int64(n)
	}
	full := d * int64(v.key.Chunk) * int64(v.key.Channels)
	return Options{Units: []int64{full/2 - 4, full + 4}}
}

// variants lists what to build for n ranks: everything at night, otherwise each
// (root, mapping, window) once with protocol, channels, chunk and hosts in turn.
func variants(b body, n int, turn *int) []variant {
	protos := []goccl.Protocol{goccl.LL, goccl.Simple}
	var vs []variant
	for _, mapped := range b.mapping() {
		for _, w := range b.windows(mapped) {
			for _, root := range b.roots(n) {
				combos := 1
				switch {
				case nightly():
					combos = 8
				case n <= 4 && !testing.Short():
					combos = 4
				}
				for range combos {
					*turn++
					c := *turn
					k := key(b.coll, b.algo, protos[c%2], 1+c/2%4, root, 1+c/8%2)
					if n > 17 {
						k.Channels = uint8(1 + c%2)
					}
					k.Window = w
					vs = append(vs, variant{key: k, hosts: 1 + c%3, mapped: mapped})
				}
			}
		}
	}
	return vs
}

// TestMargin says which depth each builder needs: nothing needs all four slots.
func TestMargin(t *testing.T) {
	for _, b := range bodies() {
		g := shape(t, 5, 2, false)
		rep, err := Survey(build(t, key(b.coll, b.algo, goccl.Simple, 1, 0, 1), g), Options{Margin: true})
		require.NoError(t, err, b)
		require.LessOrEqual(t, rep.Slots, 2, b)
	}
}

// TestLargeChunks checks Programs with chunks as communicators make them: sizes
// cost nothing, only cuts do.
func TestLargeChunks(t *testing.T) {
	k := plan.Key{Coll: goccl.AllReduce, Algo: goccl.TwoShot, Proto: goccl.Simple, DType: goccl.BF16, Channels: 2, Window: plan.WindowBoth, Chunk: 1 << 30}
	require.NoError(t, Check(build(t, k, shape(t, 3, 1, true)), Options{}))
	k.Window, k.Chunk, k.Algo = plan.WindowNone, 128<<10, goccl.Ring
	require.NoError(t, Check(build(t, k, shape(t, 3, 1, true)), Options{}))
}

// TestSequences checks P;Q;P for every ordered pair of Programs that share
// anything.
func TestSequences(t *testing.T) {
	ranks := []int{2, 3, 4}
	switch {
	case testing.Short():
		ranks = []int{3}
	case nightly():
		ranks = []int{2, 3, 4, 5, 8, 9}
	}
	for _, n := range ranks {
		pairs := 0
		ps := family(t, n)
		for i, p := range ps {
			for j, q := range ps {
				if !Share(p, q) {
					continue
				}
				pairs++
				err := CheckSequence([][]*plan.Program{p, q, p}, Options{})
				require.NoError(t, err, "%d ranks: %v then %v", n, some(ps[i]).Key, some(ps[j]).Key)
			}
		}
		t.Logf("%d ranks: %d Programs, %d pairs", n, len(ps), pairs)
	}
}

// family is one of each kind of Program over n ranks that can meet in one
// communicator.
func family(t *testing.T, n int) [][]*plan.Program {
	var ps [][]*plan.Program
	for _, mapped := range []bool{false, true} {
		g := shape(t, n, 2, mapped)
		for i, b := range bodies() {
			if mapped && len(b.mapping()) == 1 {
				continue
			}
			for _, w := range b.windows(mapped) {
				for _, root := range b.roots(n)[:min(2, len(b.roots(n)))] {
					k := key(b.coll, b.algo, goccl.LL, 1+i%2, root, 1)
					k.Window = w
					ps = append(ps, build(t, k, g))
					if mapped && b.algo == goccl.OneShot {
						// The same with another number of channels: epochs are per channel.
						k.Channels = 3 - k.Channels
						ps = append(ps, build(t, k, g))
					}
				}
			}
		}
	}
	return ps
}
