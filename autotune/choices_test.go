package autotune_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/autotune"
	"github.com/goccl/goccl/autotune/model"
	"github.com/goccl/goccl/comm"
	"github.com/goccl/goccl/comm/plan/algo"
	"github.com/goccl/goccl/internal/golden"
)

// request is one of ranks that share a host of the given cores.
func request(c goccl.Collective, class model.Class, ranks, cores int, bytes int64, window bool) comm.Request {
	r := comm.Request{Coll: c, Bytes: bytes, DType: goccl.F32, Op: goccl.Sum, Ranks: ranks, Mapped: class != model.Network, InProcess: class == model.Inproc,
		Window: window, MaxOneShot: 8 << 10, MaxChunkLL: 8 << 10, MaxChunkSimple: 128 << 10, Hosts: 1, RanksPerHost: ranks, Cores: cores}
	return r
}

func tuner(t require.TestingT) *autotune.Tuner {
	tn, err := autotune.Default()
	require.NoError(t, err)
	return tn
}

var collectives = []goccl.Collective{goccl.AllReduce, goccl.AllGather, goccl.ReduceScatter, goccl.Broadcast, goccl.Reduce, goccl.AllToAll,
	goccl.Gather, goccl.Scatter, goccl.SendRecv, goccl.Barrier}

func show(d comm.Decision) string {
	s := fmt.Sprintf("%v/%v", d.Algo, d.Proto)
	if d.Channels != 1 {
		s += fmt.Sprintf("*%d", d.Channels)
	}
	if d.Chunk != 0 {
		s += fmt.Sprintf("/%dK", d.Chunk>>10)
	}
	return s
}

// TestChoices is the table of what the default profile chooses: each line lists
// the sizes at which the choice changes.
func TestChoices(t *testing.T) {
	tn := tuner(t)
	b := &strings.Builder{}
	for _, class := range []model.Class{model.Inproc, model.Shm, model.Network} {
		for _, c := range collectives {
			for _, window := range []bool{false, true} {
				if window && (c != goccl.AllReduce || class == model.Network) {
					continue
				}
				for _, n := range []struct{ ranks, cores int }{{1, 2}, {2, 2}, {4, 2}, {4, 8}, {8, 2}, {8, 64}, {64, 64}, {300, 64}} {
					fmt.Fprintf(b, "%v %v window %v, %d ranks on %d cores:", class, c, window, n.ranks, n.cores)
					last := ""
					for size := int64(8); size <= 64<<20; size *= 2 {
						d, err := tn.Choose(request(c, class, n.ranks, n.cores, size, window))
						if err != nil {
							require.ErrorIs(t, err, goccl.ErrUnsupported)
							fmt.Fprint(b, " none")
							break
						}
						if s := show(d); s != last {
							fmt.Fprintf(b, " %d %s", size, s)
							last = s
						}
					}
					b.WriteString("\n")
				}
			}
		}
	}
	golden.File(t, "testdata/choices.txt", b.String())
}

// drawn is any request.
func drawn(t *rapid.T) comm.Request {
	class := model.Class(rapid.IntRange(0, model.NumClasses-1).Draw(t, "class"))
	c := rapid.SampledFrom(collectives).Draw(t, "collective")
	n := rapid.OneOf(rapid.IntRange(1, 17), rapid.IntRange(1, algo.MaxRanks)).Draw(t, "ranks")
	r := request(c, class, n, rapid.IntRange(1, 256).Draw(t, "cores"), rapid.OneOf(rapid.Int64Range(0, 1<<20), rapid.Int64Range(0, 1<<40)).Draw(t, "bytes"),
		rapid.Bool().Draw(t, "window"))
	if c == goccl.Barrier {
		r.Bytes = 0
	}
	r.Hosts = rapid.IntRange(1, n).Draw(t, "hosts")
	r.RanksPerHost = (n + r.Hosts - 1) / r.Hosts
	r.MaxOneShot = rapid.Int64Range(1, 128).Draw(t, "scratch") * 64
	return r
}

func TestChoicesAreLegal(t *testing.T) {
	tn := tuner(t)
	rapid.Check(t, func(t *rapid.T) {
		r := drawn(t)
		d, err := tn.Choose(r)
		if err != nil {
			require.ErrorIs(t, err, goccl.ErrUnsupported)
			for _, a := range algo.Algorithms(r.Coll) {
				if a != goccl.OneShot {
					require.Error(t, algo.Supports(r.Coll, a, r.Ranks), "%v was not considered", a)
				}
			}
			return
		}
		all := tn.Explain(r)
		require.NotEmpty(t, all)
		require.LessOrEqual(t, len(all), model.MaxCandidates)
		require.Equal(t, d, all[0].Decision)
		for _, c := range all {
			require.NoError(t, algo.Supports(r.Coll, c.Algo, r.Ranks))
			require.Positive(t, c.US)
			require.LessOrEqual(t, all[0].US, c.US)
			require.Positive(t, c.Channels)
			require.Zero(t, c.Chunk%512)
			if c.Algo == goccl.OneShot {
				part := r.Bytes
				if r.Coll == goccl.AllGather {
					part /= int64(r.Ranks)
				}
				require.LessOrEqual(t, part, r.MaxOneShot)
			}
		}
	})
}

// TestAnswersDependOnTheRequestAlone asks two tuners the same in different orders.
func TestAnswersDependOnTheRequestAlone(t *testing.T) {
	one, other := tuner(t), tuner(t)
	rapid.Check(t, func(t *rapid.T) {
		rs := rapid.SliceOfN(rapid.Custom(drawn), 1, 20).Draw(t, "requests")
		first := map[comm.Request]comm.Decision{}
		for _, r := range rs {
			first[r], _ = one.Choose(r)
		}
		for i := range rs {
			r := rs[len(rs)-1-i]
			d, _ := other.Choose(r)
			require.Equal(t, first[r], d)
			r.DType, r.Op = goccl.F64, goccl.Max
			again, _ := one.Choose(r)
			require.Equal(t, d, again, "of another element type")
		}
	})
}

func TestChoosingDoesNotAllocate(t *testing.T) {
	tn := tuner(t)
	for _, r := range []comm.Request{request(goccl.AllReduce, model.Shm, 4, 2, 1<<20, false), request(goccl.AllReduce, model.Inproc, 2, 2, 64, true),
		request(goccl.Broadcast, model.Network, 16, 64, 1<<16, false)} {
		require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = tn.Choose(r) }))
	}
}

func TestUnknownCollective(t *testing.T) {
	tn := tuner(t)
	_, err := tn.Choose(comm.Request{Coll: 77, Ranks: 2})
	require.ErrorIs(t, err, goccl.ErrUnsupported)
	require.ErrorContains(t, err, "collective(77)")
	require.Nil(t, tn.Explain(comm.Request{Coll: 77, Ranks: 2}))
}

func BenchmarkChoose(b *testing.B) {
	tn := tuner(b)
	r := request(goccl.AllReduce, model.Shm, 4, 2, 1<<20, false)
	for b.Loop() {
		_, _ = tn.Choose(r)
	}
}
