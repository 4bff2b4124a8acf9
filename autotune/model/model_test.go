package model_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/autotune/model"
	"github.com/goccl/goccl/comm/plan/algo"
)

// constants are all different, so that no two terms can be taken for another.
var constants = model.Constants{Op: 1.5, Fused: 0.4, Step: 0.31, Bulk: 0.07, Yield: 1.1, Message: 0.13, Copy: 71, Reduce: 29, Spill: 11, Far: 7, Meet: 0.6, Cache: 512 << 10}

func drawn(t *rapid.T) model.Query {
	return model.Query{
		Coll:  goccl.Collective(rapid.IntRange(1, int(goccl.Barrier)).Draw(t, "collective")),
		Class: model.Class(rapid.IntRange(0, model.NumClasses-1).Draw(t, "class")), Window: rapid.Bool().Draw(t, "window"),
		Bytes: rapid.OneOf(rapid.Int64Range(0, 1<<20), rapid.Int64Range(0, 1<<40)).Draw(t, "bytes"),
		Ranks: rapid.OneOf(rapid.IntRange(1, 17), rapid.IntRange(1, 255)).Draw(t, "ranks"), RanksPerHost: rapid.IntRange(1, 17).Draw(t, "ranks of a host"),
		Cores: rapid.IntRange(1, 64).Draw(t, "cores"), MaxOneShot: 8 << 10, MaxChunkLL: 8 << 10, MaxChunkSimple: 128 << 10}
}

func TestPredictionsArePositiveAndGrowWithBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := drawn(t)
		choices := model.AppendCandidates(nil, &q)
		require.NotEmpty(t, choices)
		more := q
		more.Bytes += rapid.Int64Range(0, 1<<21).Draw(t, "more")
		for _, c := range choices {
			us := model.Predict(&constants, &q, c)
			require.Positive(t, us)
			require.Equal(t, us, model.Predict(&constants, &q, c))
			if c.Algo != goccl.OneShot {
				require.GreaterOrEqual(t, model.Predict(&constants, &more, c), us, "%v", c)
			}
		}
	})
}

func TestCandidatesAreWhatAlgorithmsSupport(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := drawn(t)
		seen, algorithms := map[model.Choice]bool{}, map[goccl.Algorithm]bool{}
		choices := model.AppendCandidates(nil, &q)
		require.LessOrEqual(t, len(choices), model.MaxCandidates)
		for _, c := range choices {
			require.False(t, seen[c], "%v twice", c)
			seen[c], algorithms[c.Algo] = true, true
		}
		for _, a := range algo.Algorithms(q.Coll) {
			large := a == goccl.OneShot && q.Bytes > q.MaxOneShot
			require.True(t, algorithms[a] || large, "%v is not considered", a)
		}
	})
}

// TestSteps holds the counts against the formulas beside the builders: n ranks on
// cores of their own, and one chunk.
func TestSteps(t *testing.T) {
	for _, n := range []int{2, 3, 4, 8, 16} {
		q := model.Query{Class: model.Shm, Bytes: int64(n) << 10, Ranks: n, RanksPerHost: n, Cores: n, MaxOneShot: 1 << 20, MaxChunkLL: 1 << 20, MaxChunkSimple: 1 << 20}
		log2 := 0
		for 2<<log2 <= n {
			log2++
		}
		for _, c := range []struct {
			coll  goccl.Collective
			algo  goccl.Algorithm
			steps int
		}{
			{goccl.AllReduce, goccl.OneShot, 1}, {goccl.AllReduce, goccl.TwoShot, 2}, {goccl.AllReduce, goccl.Ring, 2 * (n - 1)}, {goccl.AllReduce, goccl.Tree, 2 * log2},
			{goccl.AllGather, goccl.OneShot, 1}, {goccl.AllGather, goccl.Direct, 1}, {goccl.AllGather, goccl.Ring, n - 1},
			{goccl.ReduceScatter, goccl.Direct, 1}, {goccl.ReduceScatter, goccl.Ring, n - 1},
			{goccl.Broadcast, goccl.Direct, 1}, {goccl.Broadcast, goccl.Ring, n - 1}, {goccl.Reduce, goccl.Direct, 1}, {goccl.Reduce, goccl.Ring, n - 1},
			{goccl.AllToAll, goccl.Direct, 1},
		} {
			q.Coll = c.coll
			one := model.Constants{Op: 1e-9, Fused: 1e-9, Step: 1, Cache: 1 << 40}
			us := model.Predict(&one, &q, model.Choice{Algo: c.algo, Proto: goccl.LL, Channels: 1})
			require.InDelta(t, c.steps, us, 1e-6, "%v by %v over %d ranks", c.coll, c.algo, n)
		}
	}
}

// TestRanksThatOutnumberCoresShareThem: four ranks on two cores do all ranks' work
// with half as many cores, and every wait costs a switch.
func TestRanksThatOutnumberCoresShareThem(t *testing.T) {
	q := model.Query{Coll: goccl.AllReduce, Class: model.Shm, Bytes: 4 << 20, Ranks: 4, RanksPerHost: 4, Cores: 4, MaxOneShot: 8 << 10, MaxChunkLL: 8 << 10, MaxChunkSimple: 8 << 20}
	c := model.Choice{Algo: goccl.TwoShot, Proto: goccl.Simple, Channels: 1}
	free := model.Terms(&q, c, 1<<40)
	q.Cores = 2
	shared := model.Terms(&q, c, 1<<40)
	copied, reduced, step, yield := 6, 7, 2, 4
	require.Equal(t, 2*free[copied], shared[copied])
	require.Equal(t, 2*free[reduced], shared[reduced])
	require.Equal(t, 2.0, free[step])
	require.Zero(t, shared[step])
	require.Equal(t, 4.0, shared[yield])
}

func TestFitRecoversConstants(t *testing.T) {
	var samples []model.Sample
	for _, n := range []int{2, 4, 8} {
		for _, cores := range []int{2, 16} {
			for _, coll := range []goccl.Collective{goccl.AllReduce, goccl.AllGather, goccl.ReduceScatter, goccl.Broadcast} {
				for _, window := range []bool{false, coll == goccl.AllReduce} {
					for b := int64(64); b <= 16<<20; b *= 4 {
						q := model.Query{Coll: coll, Class: model.Shm, Window: window, Bytes: b, Ranks: n, RanksPerHost: n, Cores: cores,
							MaxOneShot: 8 << 10, MaxChunkLL: 8 << 10, MaxChunkSimple: 128 << 10}
						for _, c := range model.AppendCandidates(nil, &q) {
							s := model.Sample{Query: q, Choice: c, US: model.Predict(&constants, &q, c), Weight: 1, Barrier: coll == goccl.Broadcast}
							if s.Barrier {
								bq, bc := model.BarrierOf(&q)
								s.US += model.Predict(&constants, &bq, bc)
							}
							samples = append(samples, s)
						}
					}
				}
			}
		}
	}
	samples = append(samples, model.Sample{Query: samples[0].Query, Choice: samples[0].Choice, US: -1, Weight: 1})
	prior := model.Constants{Op: 2, Fused: 0.5, Step: 0.5, Bulk: 0.05, Yield: 2, Message: 0.1, Copy: 100, Reduce: 50, Spill: 20, Far: 10, Meet: 1, Cache: constants.Cache}
	got := model.Fit(samples, prior)
	want := constants.Vector()
	for i, v := range got.Vector() {
		require.InEpsilon(t, want[i], v, 0.2, "constant %d", i)
	}
	require.Equal(t, got, model.Fit(samples, prior))
	// One sample in a hundred is a hundred times too slow.
	for i := range samples {
		if i%100 == 7 {
			samples[i].US *= 100
		}
	}
	bent := model.Fit(samples, prior)
	for _, s := range samples[:len(samples)-1] {
		a, b := model.Predict(&got, &s.Query, s.Choice), model.Predict(&bent, &s.Query, s.Choice)
		require.InEpsilon(t, a, b, 0.3)
	}
}

func TestConstantsValid(t *testing.T) {
	require.True(t, constants.Valid())
	for _, bad := range []func(k *model.Constants){func(k *model.Constants) { k.Op = 0 }, func(k *model.Constants) { k.Fused = 0 },
		func(k *model.Constants) { k.Copy = -1 }, func(k *model.Constants) { k.Far = 1e7 }, func(k *model.Constants) { k.Cache = 0 }, func(k *model.Constants) { k.Cache = 1 << 50 }} {
		k := constants
		bad(&k)
		require.False(t, k.Valid(), "%+v", k)
	}
}

func TestClassNames(t *testing.T) {
	for c := range model.Class(model.NumClasses) {
		got, ok := model.ParseClass(c.String())
		require.True(t, ok)
		require.Equal(t, c, got)
	}
	_, ok := model.ParseClass("unknown")
	require.False(t, ok)
	require.Equal(t, "unknown", model.Class(9).String())
}
