package algo

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/graph"
	"github.com/goccl/goccl/comm/plan"
	"github.com/goccl/goccl/internal/golden"
)

func shape(t *testing.T, n int, mapped bool) *graph.Graph {
	t.Helper()
	places := make([]graph.Place, n)
	for r := range places {
		places[r] = graph.Place{Host: uint64(r%2) + 1, Mapped: mapped}
	}
	g, err := graph.New(places)
	require.NoError(t, err)
	return g
}

func keyOf(c goccl.Collective, a goccl.Algorithm) plan.Key {
	return plan.Key{Coll: c, Algo: a, Proto: goccl.Simple, DType: goccl.F32, Channels: 2, Chunk: 4096}
}

// each calls f for every collective and algorithm that there is.
func each(f func(c goccl.Collective, a goccl.Algorithm)) {
	for c := goccl.AllReduce; c.Valid(); c++ {
		for _, a := range Algorithms(c) {
			f(c, a)
		}
	}
}

// dump is the Programs of all ranks. A rank that differs from the one before in
// nothing but numbers is still printed: the numbers are the point.
func dump(t *testing.T, k plan.Key, g *graph.Graph) string {
	t.Helper()
	var b strings.Builder
	for r := range g.NRanks {
		if k.Coll == goccl.SendRecv {
			k.Send, k.Root = r%2 == 0, int32(r^1)
		}
		p, err := Build(k, r, g)
		require.NoError(t, err)
		require.NoError(t, plan.Validate(p))
		b.WriteString(p.String() + "\n")
	}
	return b.String()
}

// TestPrograms compares every builder's Programs on four ranks of two hosts with
// the texts in testdata.
func TestPrograms(t *testing.T) {
	each(func(c goccl.Collective, a goccl.Algorithm) {
		path := fmt.Sprintf("testdata/%v-%v", c, a)
		golden.File(t, path+".txt", dump(t, keyOf(c, a), shape(t, 4, false)))
		if a == goccl.OneShot {
			golden.File(t, path+"-mapped.txt", dump(t, keyOf(c, a), shape(t, 4, true)))
		}
	})
	k := keyOf(goccl.AllReduce, goccl.TwoShot)
	k.Window = plan.WindowBoth
	golden.File(t, "testdata/allreduce-twoshot-window.txt", dump(t, k, shape(t, 4, true)))
	golden.File(t, "testdata/single.txt", dump(t, keyOf(goccl.AllReduce, goccl.Ring), shape(t, 1, true)))
}

// TestBuildIsPure builds every Program twice: each time the same.
func TestBuildIsPure(t *testing.T) {
	each(func(c goccl.Collective, a goccl.Algorithm) {
		g := shape(t, 7, true)
		k := keyOf(c, a)
		k.Root = 1
		for r := range g.NRanks {
			if c == goccl.SendRecv && r == 1 {
				continue
			}
			p, err := Build(k, r, g)
			require.NoError(t, err)
			q, err := Build(k, r, g)
			require.NoError(t, err)
			require.Equal(t, p, q)
		}
	})
}

// TestRingsStayShort checks that a ring's code does not grow with the ranks.
func TestRingsStayShort(t *testing.T) {
	for _, n := range []int{3, 100, 1000} {
		p, err := Build(keyOf(goccl.AllReduce, goccl.Ring), n/2, shape(t, n, false))
		require.NoError(t, err)
		require.Len(t, p.Code, 11)
		require.NoError(t, plan.Validate(p))
	}
}

// TestTooManyParts asks for more connectors than an index can name.
func TestTooManyParts(t *testing.T) {
	k := keyOf(goccl.AllReduce, goccl.TwoShot)
	k.Channels = 200
	_, err := Build(k, 0, shape(t, 255, false))
	require.ErrorIs(t, err, goccl.ErrUnsupported)
	require.ErrorContains(t, err, "use fewer channels")
	k.Channels = 4
	p, err := Build(k, 0, shape(t, 255, false))
	require.NoError(t, err)
	require.NoError(t, plan.Validate(p))
}

func TestSupports(t *testing.T) {
	require.NoError(t, Supports(goccl.AllReduce, goccl.Ring, 1000))
	require.NoError(t, Supports(goccl.SendRecv, goccl.Direct, 1000))
	for _, x := range []struct {
		c    goccl.Collective
		a    goccl.Algorithm
		n    int
		says string
	}{
		{goccl.AllToAll, goccl.Ring, 4, "alltoall has no ring algorithm (it has direct)"},
		{goccl.AllReduce, goccl.Auto, 4, "it has ring tree oneshot twoshot"},
		{goccl.Collective(99), goccl.Ring, 4, "it has none"},
		{goccl.AllReduce, goccl.OneShot, 256, "at most 255"},
		{goccl.AllReduce, goccl.Ring, MaxRanks + 1, "at most 32767"},
	} {
		err := Supports(x.c, x.a, x.n)
		require.ErrorIs(t, err, goccl.ErrUnsupported)
		require.ErrorContains(t, err, x.says)
	}
}

func TestBuildRefuses(t *testing.T) {
	g := shape(t, 3, false)
	for _, x := range []struct {
		says string
		want error
		rank int
		edit func(k *plan.Key)
	}{
		{"not complete", goccl.ErrInvalid, 0, func(k *plan.Key) { k.DType = 0 }},
		{"not complete", goccl.ErrInvalid, 0, func(k *plan.Key) { k.Proto = goccl.AutoProto }},
		{"at least one channel", goccl.ErrInvalid, 0, func(k *plan.Key) { k.Channels = 0 }},
		{"multiple of 512", goccl.ErrInvalid, 0, func(k *plan.Key) { k.Chunk = 100 }},
		{"rank 3 of 3", goccl.ErrInvalid, 3, func(*plan.Key) {}},
		{"root 5 of 3", goccl.ErrInvalid, 0, func(k *plan.Key) { k.Coll, k.Root = goccl.Reduce, 5 }},
		{"rank 1 and peer 1", goccl.ErrInvalid, 1, func(k *plan.Key) { k.Coll, k.Algo, k.Root = goccl.SendRecv, goccl.Direct, 1 }},
		{"allreduce of f8e4m3", goccl.ErrUnsupported, 0, func(k *plan.Key) { k.DType = goccl.F8E4M3 }},
		{"no direct algorithm", goccl.ErrUnsupported, 0, func(k *plan.Key) { k.Algo = goccl.Direct }},
		{"all ranks map", goccl.ErrUnsupported, 0, func(k *plan.Key) { k.Algo, k.Window = goccl.TwoShot, plan.WindowBoth }},
	} {
		k := keyOf(goccl.AllReduce, goccl.Ring)
		x.edit(&k)
		_, err := Build(k, x.rank, g)
		require.ErrorIs(t, err, x.want, x.says)
		require.ErrorContains(t, err, x.says)
	}
}
