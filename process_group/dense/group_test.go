package dense_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/tensor"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	processgroup "github.com/goccl/goccl/process_group"
	"github.com/goccl/goccl/process_group/backend/fake"
	"github.com/goccl/goccl/process_group/dense"
)

func vec(v ...float32) *tensor.Dense { return on(v, len(v)) }

// TestEveryMethod calls each with tensors on two ranks; what the collectives do is
// held by pgtest, so it is the passing on that is looked at here.
func TestEveryMethod(t *testing.T) {
	gs := fake.Groups(2, processgroup.Config{})
	defer closeAll(t, gs)
	got := make([][]any, 2)
	var wg sync.WaitGroup
	errs := make([]error, 2)
	call := func(g dense.Group, r int) []processgroup.Work {
		x, y := float32(r+1), float32(10*(r+1))
		var ws []processgroup.Work
		ran := func(w processgroup.Work, ts ...*tensor.Dense) {
			ws = append(ws, w)
			for _, d := range ts {
				got[r] = append(got[r], d.Data())
			}
		}
		a := vec(x, y)
		ran(g.AllReduce(a, goccl.Sum), a)
		b := vec(0, 0)
		ran(g.AllReduceInto(b, vec(x, y), goccl.Max), b)
		c := vec(x, y)
		ran(g.Reduce(c, goccl.Sum, 0), c)
		d := vec(x, y)
		ran(g.Broadcast(d, 1), d)
		list := []*tensor.Dense{vec(0), vec(0)}
		ran(g.AllGather(list, vec(x)), list...)
		e := vec(0, 0)
		ran(g.AllGatherInto(e, vec(x)), e)
		f := vec(0)
		ran(g.ReduceScatter(f, vec(x, y), goccl.Sum), f)
		h := vec(0, 0)
		ran(g.AllToAll(h, vec(x, y)), h)
		i := vec(0, 0)
		ran(g.AllToAllV(i, vec(x, y), []int{1, 1}, []int{1, 1}), i)
		var all, parts []*tensor.Dense
		if r == 0 {
			all, parts = []*tensor.Dense{vec(0), vec(0)}, []*tensor.Dense{vec(7), vec(8)}
		}
		ran(g.Gather(all, vec(x), 0), all...)
		j := vec(0)
		ran(g.Scatter(j, parts, 0), j)
		k := vec(x)
		if r == 0 {
			ran(g.Send(k, 1), k)
		} else {
			ran(g.Recv(k, 0), k)
		}
		l := vec(0)
		ran(g.BatchSendRecv([]dense.P2P{{T: vec(y), Peer: 1 - r}, {T: l, Peer: 1 - r, Recv: true}}), l)
		return ws
	}
	for r, g := range gs {
		wg.Go(func() { errs[r] = processgroup.WaitAll(t.Context(), call(dense.Wrap(g).On(nil), r)...) })
	}
	wg.Wait()
	require.NoError(t, errs[0])
	require.NoError(t, errs[1])
	want := [][]string{
		{"3 30", "2 20", "3 30", "2 20", "1", "2", "1 2", "3", "1 2", "1 2", "1", "2", "7", "1", "20"},
		{"3 30", "2 20", "2 20", "2 20", "1", "2", "1 2", "30", "10 20", "10 20", "8", "1", "10"},
	}
	for r := range want {
		require.Len(t, got[r], len(want[r]))
		for i, s := range got[r] {
			require.Equal(t, "["+want[r][i]+"]", fmt.Sprint(s), "rank %d, result %d", r, i)
		}
	}
}

// TestRefusalsOfEveryMethod holds that no method lets a bad tensor through.
func TestRefusalsOfEveryMethod(t *testing.T) {
	bad, good := transposed(t, on(count(4, 1), 2, 2)), on(count(4, 1), 2, 2)
	list := []*tensor.Dense{good, bad}
	calls := map[string]func(g dense.Group) processgroup.Work{
		"allreduce":      func(g dense.Group) processgroup.Work { return g.AllReduceInto(good, bad, goccl.Sum) },
		"allreduce into": func(g dense.Group) processgroup.Work { return g.AllReduceInto(bad, good, goccl.Sum) },
		"reduce":         func(g dense.Group) processgroup.Work { return g.Reduce(bad, goccl.Sum, 0) },
		"broadcast":      func(g dense.Group) processgroup.Work { return g.Broadcast(bad, 0) },
		"allgather":      func(g dense.Group) processgroup.Work { return g.AllGather(list, good) },
		"allgatherinto":  func(g dense.Group) processgroup.Work { return g.AllGatherInto(bad, good) },
		"reducescatter":  func(g dense.Group) processgroup.Work { return g.ReduceScatter(bad, good, goccl.Sum) },
		"alltoall":       func(g dense.Group) processgroup.Work { return g.AllToAll(bad, good) },
		"alltoallv":      func(g dense.Group) processgroup.Work { return g.AllToAllV(bad, good, nil, nil) },
		"gather":         func(g dense.Group) processgroup.Work { return g.Gather(list, good, 0) },
		"scatter":        func(g dense.Group) processgroup.Work { return g.Scatter(bad, list, 0) },
		"send":           func(g dense.Group) processgroup.Work { return g.Send(bad, 1) },
		"recv":           func(g dense.Group) processgroup.Work { return g.Recv(bad, 1) },
		"batch":          func(g dense.Group) processgroup.Work { return g.BatchSendRecv([]dense.P2P{{T: bad, Peer: 1}}) },
	}
	for name, call := range calls {
		b := fake.Immediate()
		g := dense.Wrap(processgroup.New(processgroup.Config{Name: "g", Size: 2, Backend: b}))
		require.ErrorIs(t, call(g).Wait(t.Context()), dense.ErrStrided, name)
		require.Zero(t, b.Started(), name)
		require.NoError(t, g.Close())
	}
}

// TestMemoryOutlivesTheHeader gives a tensor back to gorgonia's pool, and drops
// it, while its operation is under way.
func TestMemoryOutlivesTheHeader(t *testing.T) {
	gs := fake.Groups(2, processgroup.Config{})
	defer closeAll(t, gs)
	func() {
		d := on(count(50_000, 1), 50_000)
		dense.Wrap(gs[0]).Broadcast(d, 0)
		tensor.ReturnTensor(d)
	}()
	for range 3 {
		runtime.GC()
		require.Len(t, count(50_000, -1), 50_000)
	}
	out := on(make([]float32, 50_000), 50_000)
	require.NoError(t, dense.Wrap(gs[1]).Broadcast(out, 0).Wait(t.Context()))
	require.Equal(t, count(50_000, 1), out.Data())
}

// packed packs and unpacks a 2 by 3 matrix of T through a collective that
// adds nothing, and returns what it saw.
func packed[T any](t *testing.T, backing []T, d goccl.DType) {
	was := fmt.Sprint(backing)
	x := transposed(t, tensor.New(tensor.WithShape(2, 3), tensor.WithBacking(backing)))
	g := processgroup.New(processgroup.Config{Name: "g", Size: 1, Backend: fake.Connect(1).Backends()[0]})
	defer func() { require.NoError(t, g.Close()) }()
	var saw *tensor.Dense
	require.NoError(t, dense.Through(t.Context(), x, func(b device.Buffer) processgroup.Work {
		require.Equal(t, d, b.DType)
		var err error
		saw, err = dense.Tensor(b, 6)
		require.NoError(t, err)
		return g.AllReduce(b, goccl.Sum)
	}))
	require.Equal(t, was, fmt.Sprint(backing))
	require.Equal(t, fmt.Sprint([]T{backing[0], backing[3], backing[1], backing[4], backing[2], backing[5]}), fmt.Sprint(saw.Data()))
}

func TestThroughEveryElementSize(t *testing.T) {
	packed(t, []int8{1, 2, 3, 4, 5, 6}, goccl.I8)
	packed(t, []goccl.Float16{10, 20, 30, 40, 50, 60}, goccl.F16)
	packed(t, []int32{1, 2, 3, 4, 5, 6}, goccl.I32)
	packed(t, []float64{1, 2, 3, 4, 5, 6}, goccl.F64)
	packed(t, []int{1, 2, 3, 4, 5, 6}, goccl.I64)
}

func TestThroughGivesUp(t *testing.T) {
	backing := count(4, 1)
	d := transposed(t, on(backing, 2, 2))
	g, b := fake.Group(0, 2)
	defer func() { g.Abort(nil); require.NoError(t, g.Close()) }()
	err := dense.Through(t.Context(), d, func(b device.Buffer) processgroup.Work {
		return g.AllReduce(b, goccl.PreMulSum(1), processgroup.Tag(1)) // refused
	})
	require.ErrorIs(t, err, goccl.ErrInvalid)
	require.Zero(t, b.Started())
	require.Equal(t, count(4, 1), backing)
}

func ExampleGroup_AllReduce() {
	groups := fake.Groups(2, processgroup.Config{})
	works := make([]processgroup.Work, 2)
	tensors := make([]*tensor.Dense, 2)
	for rank, g := range groups { // each of these would be a process
		tensors[rank] = tensor.New(tensor.WithShape(2, 2), tensor.WithBacking([]float32{1, 2, 3, float32(rank)}))
		works[rank] = dense.Wrap(g).AllReduce(tensors[rank], goccl.Avg)
	}
	for rank, w := range works {
		fmt.Println(w.Wait(groups[rank].Context()), tensors[rank].Data())
	}
	for _, g := range groups {
		g.Close()
	}
	// Output:
	// <nil> [1 2 3 0.5]
	// <nil> [1 2 3 0.5]
}
