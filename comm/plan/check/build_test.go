package check

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/graph"
	"github.com/goccl/goccl/comm/plan"
	"github.com/goccl/goccl/comm/plan/algo"
)

// shape is a graph of n ranks. On several hosts the ranks are dealt out, so that
// the ring is not in rank order; ranks of several hosts map nothing.
func shape(t testing.TB, n, hosts int, mapped bool) *graph.Graph {
	t.Helper()
	places := make([]graph.Place, n)
	for r := range places {
		places[r] = graph.Place{Host: uint64(r*7%hosts) + 1, Mapped: mapped}
	}
	g, err := graph.New(places)
	require.NoError(t, err)
	return g
}

// key is a key with chunks of few grains, so that small buffers take several
// iterations.
func key(c goccl.Collective, a goccl.Algorithm, p goccl.Protocol, channels, root, grains int) plan.Key {
	k := plan.Key{Coll: c, Algo: a, Proto: p, DType: goccl.F32, Channels: uint8(channels), Root: int32(root), Chunk: uint32(grains) * uint32(algo.Grain(p))}
	if c.Reduces() {
		k.Op = goccl.Avg
	}
	return k
}

// build makes the Programs of all ranks. For a SendRecv the root sends to the
// rank after it.
func build(t testing.TB, k plan.Key, g *graph.Graph) []*plan.Program {
	t.Helper()
	progs := make([]*plan.Program, g.NRanks)
	if k.Coll == goccl.SendRecv && g.NRanks > 1 {
		from := int(k.Root)
		to := (from + 1) % g.NRanks
		for r, peer := range map[int]int{from: to, to: from} {
			k.Send, k.Root = r == from, int32(peer)
			progs[r] = buildOne(t, k, r, g)
		}
		return progs
	}
	for r := range progs {
		progs[r] = buildOne(t, k, r, g)
	}
	return progs
}

func buildOne(t testing.TB, k plan.Key, r int, g *graph.Graph) *plan.Program {
	t.Helper()
	p, err := algo.Build(k, r, g)
	require.NoError(t, err, "%v rank %d of %d", k, r, g.NRanks)
	return p
}

// kindOf returns the kind of a violation, empty for nil.
func kindOf(t testing.TB, err error) Kind {
	t.Helper()
	if err == nil {
		return ""
	}
	var v *Violation
	require.ErrorAs(t, err, &v)
	return v.Kind
}

// body is one builder with a collective.
type body struct {
	coll goccl.Collective
	algo goccl.Algorithm
}

// bodies lists every builder and collective.
func bodies() []body {
	var bs []body
	for c := goccl.AllReduce; c.Valid(); c++ {
		for _, a := range algo.Algorithms(c) {
			bs = append(bs, body{c, a})
		}
	}
	return bs
}

func (b body) String() string { return fmt.Sprintf("%v/%v", b.coll, b.algo) }

// roots are the roots worth looking at.
func (b body) roots(n int) []int {
	switch {
	case !b.coll.Rooted() && b.coll != goccl.SendRecv, n == 1:
		return []int{0}
	case n == 2:
		return []int{0, 1}
	}
	return []int{0, 1, n - 1}
}

// windows are the window modes that change the Program.
func (b body) windows(mapped bool) []plan.Window {
	if mapped && b.coll == goccl.AllReduce && b.algo == goccl.TwoShot {
		return []plan.Window{plan.WindowNone, plan.WindowBoth}
	}
	return []plan.Window{plan.WindowNone}
}

// mapping are the values of Mapped that change the Program.
func (b body) mapping() []bool {
	if b.algo == goccl.OneShot || b.algo == goccl.TwoShot && b.coll == goccl.AllReduce {
		return []bool{false, true}
	}
	return []bool{false}
}

func seeded(a uint64) *rand.Rand { return rand.New(rand.NewPCG(a, 1)) }
