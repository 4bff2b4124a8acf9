package exec

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/graph"
	"github.com/goccl/goccl/comm/plan"
	"github.com/goccl/goccl/comm/plan/algo"
	"github.com/goccl/goccl/comm/transport"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/internal/shmem"
)

// mesh is n executors that share memory and one FIFO for every pair, direction
// and channel, all stepped by one goroutine.
type mesh struct {
	t     *testing.T
	execs []*Exec
	graph *graph.Graph
	fifos map[[3]int]shmem.Mem
}

var spec = transport.FIFOSpec{Slots: 4, SlotBytes: 1024, Inline: true}

func newMesh(t *testing.T, n int, mapped bool) *mesh {
	places := make([]graph.Place, n)
	for i := range places {
		places[i].Mapped = mapped
	}
	g, err := graph.New(places)
	require.NoError(t, err)
	m := &mesh{t: t, graph: g, fifos: map[[3]int]shmem.Mem{}}
	layout := Layout{Ranks: n, SlotBytes: ScratchSlot(n)}
	var regions []shmem.Mem
	var bells []*atomic.Uint64
	if mapped {
		for range n {
			r := private(t, layout.Bytes())
			regions, bells = append(regions, r), append(bells, Bell(r))
		}
	}
	for r := range n {
		m.execs = append(m.execs, New(Config{Rank: r, Size: n, Layout: layout, Regions: regions, Bells: bells}))
	}
	return m
}

func private(t *testing.T, n int) shmem.Mem {
	m, err := shmem.Private(n)
	require.NoError(t, err)
	return m
}

// ends implements Links for one rank.
type ends struct {
	m    *mesh
	rank int
}

func (e ends) fifo(src, dst, ch int) shmem.Mem {
	k := [3]int{src, dst, ch}
	if _, ok := e.m.fifos[k]; !ok {
		e.m.fifos[k] = private(e.m.t, spec.Bytes())
	}
	return e.m.fifos[k]
}

func (e ends) Send(c plan.Conn, ch int) (*transport.Send, error) {
	return transport.NewSend(e.fifo(e.rank, int(c.Peer), ch), spec, nil), nil
}

func (e ends) Recv(c plan.Conn, ch int) (*transport.Recv, error) {
	return transport.NewRecv(e.fifo(int(c.Peer), e.rank, ch), spec, nil), nil
}

// bind builds the Program of every rank.
func (m *mesh) bind(k plan.Key) []*Bound {
	bs := make([]*Bound, len(m.execs))
	for r := range bs {
		p, err := algo.Build(k, r, m.graph)
		require.NoError(m.t, err)
		bs[r], err = Bind(p, ends{m, r})
		require.NoError(m.t, err)
	}
	return bs
}

// run steps all ranks in a random order until they have finished.
func (m *mesh) run(bs []*Bound, args []Args, rng *rand.Rand) {
	runs := make([]Run, len(bs))
	for r := range runs {
		require.NoError(m.t, runs[r].Begin(m.execs[r], bs[r], args[r]))
	}
	left := map[int]bool{}
	for r := range runs {
		left[r] = true
	}
	for turns := 0; len(left) > 0; turns++ {
		require.Less(m.t, turns, 100_000, "nobody moves")
		r := rng.IntN(len(runs))
		if !left[r] {
			continue
		}
		done, _, err := runs[r].Step()
		require.NoError(m.t, err)
		if done {
			delete(left, r)
		}
	}
}

// TestFusedOneShotEqualsProgram is the contract of the fused form: the same bits,
// banks and epochs as the Program it stands for, also when ranks mix the two.
func TestFusedOneShotEqualsProgram(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{2, 3, 4, 7} {
		m := newMesh(t, n, true)
		for _, d := range goccl.DTypes() {
			for _, op := range []goccl.ReduceOp{goccl.Sum, goccl.Prod, goccl.Min, goccl.Max, goccl.Avg, goccl.PreMulSum(0.37)} {
				if _, scaled := op.Scale(); scaled && !d.Float() {
					continue
				}
				k := plan.Key{Coll: goccl.AllReduce, Algo: goccl.OneShot, Proto: goccl.LL, DType: d, Op: op.Kind(), Channels: 1, Chunk: 8192}
				fused, plain := m.bind(k), m.bind(k)
				for r := range n {
					require.True(t, fused[r].fused)
					plain[r].fused = false
				}
				mixed := append([]*Bound{}, fused...)
				mixed[n-1] = plain[n-1]
				for _, count := range []int{0, 1, 5, 64, 513} {
					t.Run(fmt.Sprintf("n=%d/%v/%v/%d", n, d, op, count), func(t *testing.T) {
						in := make([][]uint64, n)
						for r := range in {
							in[r] = make([]uint64, count+1)
							for i := range in[r] {
								in[r][i] = rng.Uint64()
							}
						}
						want := m.reduce(plain, in, d, op, count, rng)
						require.Equal(t, want, m.reduce(fused, in, d, op, count, rng))
						require.Equal(t, want, m.reduce(mixed, in, d, op, count, rng))
					})
				}
			}
		}
		for r := range n {
			require.Equal(t, m.execs[0].epochs, m.execs[r].epochs)
		}
	}
}

// reduce runs an AllReduce of random bits and returns every rank's output.
func (m *mesh) reduce(bs []*Bound, in [][]uint64, d goccl.DType, op goccl.ReduceOp, count int, rng *rand.Rand) [][]uint64 {
	out, args := make([][]uint64, len(bs)), make([]Args, len(bs))
	for r := range bs {
		out[r] = make([]uint64, count+1)
		args[r] = Args{In: device.SliceOf(in[r]).Addr, Out: device.SliceOf(out[r]).Addr, Unit: int64(count * d.Size()), Sig: 77}
		args[r].Scale, args[r].Scaled = op.Scale()
	}
	m.run(bs, args, rng)
	runtime.KeepAlive(in)
	return out
}

// TestStepsInAnyOrder runs every algorithm with the ranks stepped in random
// orders: the result does not depend on who is faster.
func TestStepsInAnyOrder(t *testing.T) {
	const n, count = 4, 3000
	for _, a := range []goccl.Algorithm{goccl.Ring, goccl.Tree, goccl.TwoShot} {
		for _, mapped := range []bool{false, true} {
			m := newMesh(t, n, mapped)
			bs := m.bind(plan.Key{Coll: goccl.AllReduce, Algo: a, Proto: goccl.LL, DType: goccl.F32, Op: goccl.Sum, Channels: 2, Chunk: 1024})
			var first [][]float32
			for seed := range uint64(20) {
				in, out, args := make([][]float32, n), make([][]float32, n), make([]Args, n)
				for r := range n {
					in[r], out[r] = make([]float32, count), make([]float32, count)
					for i := range in[r] {
						in[r][i] = 1 / float32(r*31+i+1)
					}
					args[r] = Args{In: device.SliceOf(in[r]).Addr, Out: device.SliceOf(out[r]).Addr, Unit: count * 4, Sig: uint32(seed)}
				}
				m.run(bs, args, rand.New(rand.NewPCG(seed, 9)))
				runtime.KeepAlive(in)
				for r := range n {
					require.Equal(t, out[0], out[r], "%v: rank %d has other bits", a, r)
				}
				if first == nil {
					first = out
				}
				require.Equal(t, first, out)
			}
		}
	}
}

func TestClashIsFoundInTheMessage(t *testing.T) {
	for _, mapped := range []bool{false, true} {
		m := newMesh(t, 2, mapped)
		bs := m.bind(plan.Key{Coll: goccl.AllReduce, Algo: goccl.OneShot, Proto: goccl.LL, DType: goccl.F32, Op: goccl.Sum, Channels: 1, Chunk: 1024})
		var runs [2]Run
		buf := [2][]float32{make([]float32, 4), make([]float32, 4)}
		for r := range runs {
			a := device.SliceOf(buf[r]).Addr
			require.NoError(t, runs[r].Begin(m.execs[r], bs[r], Args{In: a, Out: a, Unit: 16, Sig: uint32(100 + r)}))
		}
		_, _, err := runs[0].Step()
		require.NoError(t, err)
		_, _, err = runs[1].Step()
		var clash *Clash
		require.ErrorAs(t, err, &clash)
		require.Equal(t, Clash{Peer: 0, Sig: 100}, *clash)
		require.ErrorIs(t, err, goccl.ErrMismatch)
	}
}
