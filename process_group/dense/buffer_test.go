package dense_test

import (
	"context"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/tensor"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	processgroup "github.com/goccl/goccl/process_group"
	"github.com/goccl/goccl/process_group/backend/fake"
	"github.com/goccl/goccl/process_group/dense"
)

// count returns 1, 2, ... n, times scale.
func count(n int, scale float32) []float32 {
	s := make([]float32, n)
	for i := range s {
		s[i] = float32(i+1) * scale
	}
	return s
}

// on returns a tensor over backing, which the test looks at to see the gaps.
func on(backing []float32, shape ...int) *tensor.Dense {
	return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(backing))
}

func slice(t *testing.T, d *tensor.Dense, s ...tensor.Slice) *tensor.Dense {
	v, err := d.Slice(s...)
	require.NoError(t, err)
	return v.(*tensor.Dense)
}

func transposed(t *testing.T, d *tensor.Dense, axes ...int) *tensor.Dense {
	require.NoError(t, d.T(axes...))
	return d
}

// layout is a kind of tensor over a backing of 24 elements.
type layout struct {
	name   string
	direct bool  // Buffer takes it
	at     []int // places in the backing, in row-major order of the tensor
	make   func(t *testing.T, backing []float32) *tensor.Dense
}

func span(from, to int) []int {
	var s []int
	for i := from; i < to; i++ {
		s = append(s, i)
	}
	return s
}

var layouts = []layout{
	{"matrix", true, span(0, 24), func(_ *testing.T, b []float32) *tensor.Dense { return on(b, 4, 6) }},
	{"vector", true, span(0, 24), func(_ *testing.T, b []float32) *tensor.Dense { return on(b, 24) }},
	{"column vector", true, span(0, 24), func(_ *testing.T, b []float32) *tensor.Dense { return on(b, 24, 1) }},
	{"row vector", true, span(0, 24), func(_ *testing.T, b []float32) *tensor.Dense { return on(b, 1, 24) }},
	{"cube", true, span(0, 24), func(_ *testing.T, b []float32) *tensor.Dense { return on(b, 2, 3, 4) }},
	{"ones between", true, span(0, 24), func(_ *testing.T, b []float32) *tensor.Dense { return on(b, 2, 1, 3, 1, 4) }},
	{"reshaped", true, span(0, 24), func(t *testing.T, b []float32) *tensor.Dense {
		d := on(b, 4, 6)
		require.NoError(t, d.Reshape(8, 3))
		return d
	}},
	{"rows", true, span(6, 18), func(t *testing.T, b []float32) *tensor.Dense { return slice(t, on(b, 4, 6), tensor.S(1, 3)) }},
	{"one row", true, span(12, 18), func(t *testing.T, b []float32) *tensor.Dense { return slice(t, on(b, 4, 6), tensor.S(2)) }},
	{"part of a row", true, span(13, 16), func(t *testing.T, b []float32) *tensor.Dense {
		return slice(t, on(b, 4, 6), tensor.S(2), tensor.S(1, 4))
	}},
	{"one element", true, []int{8}, func(t *testing.T, b []float32) *tensor.Dense {
		return slice(t, on(b, 4, 6), tensor.S(1), tensor.S(2))
	}},
	{"transposed vector", true, span(0, 24), func(t *testing.T, b []float32) *tensor.Dense { return transposed(t, on(b, 1, 24)) }},
	{"transposed", false, []int{0, 6, 12, 18, 1, 7, 13, 19, 2, 8, 14, 20, 3, 9, 15, 21, 4, 10, 16, 22, 5, 11, 17, 23},
		func(t *testing.T, b []float32) *tensor.Dense { return transposed(t, on(b, 4, 6)) }},
	{"transposed cube", false, []int{0, 12, 4, 16, 8, 20, 1, 13, 5, 17, 9, 21, 2, 14, 6, 18, 10, 22, 3, 15, 7, 19, 11, 23},
		func(t *testing.T, b []float32) *tensor.Dense { return transposed(t, on(b, 2, 3, 4), 2, 1, 0) }},
	{"column", false, []int{2, 8, 14, 20}, func(t *testing.T, b []float32) *tensor.Dense {
		return slice(t, on(b, 4, 6), nil, tensor.S(2))
	}},
	{"columns", false, []int{1, 2, 7, 8, 13, 14, 19, 20}, func(t *testing.T, b []float32) *tensor.Dense {
		return slice(t, on(b, 4, 6), nil, tensor.S(1, 3))
	}},
	{"block", false, []int{8, 9, 10, 14, 15, 16}, func(t *testing.T, b []float32) *tensor.Dense {
		return slice(t, on(b, 4, 6), tensor.S(1, 3), tensor.S(2, 5))
	}},
	{"every second column", false, []int{0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22}, func(t *testing.T, b []float32) *tensor.Dense {
		return slice(t, on(b, 4, 6), nil, tensor.S(0, 6, 2))
	}},
	{"every second row", false, []int{0, 1, 2, 3, 4, 5, 12, 13, 14, 15, 16, 17}, func(t *testing.T, b []float32) *tensor.Dense {
		return slice(t, on(b, 4, 6), tensor.S(0, 4, 2))
	}},
	{"block of a transposed", false, []int{7, 13, 8, 14, 9, 15}, func(t *testing.T, b []float32) *tensor.Dense {
		return slice(t, transposed(t, on(b, 4, 6)), tensor.S(1, 4), tensor.S(1, 3))
	}},
	{"column major", false, []int{0, 4, 8, 12, 16, 20, 1, 5, 9, 13, 17, 21, 2, 6, 10, 14, 18, 22, 3, 7, 11, 15, 19, 23},
		func(_ *testing.T, b []float32) *tensor.Dense {
			return tensor.New(tensor.WithShape(4, 6), tensor.AsFortran(b))
		}},
}

// TestLayouts sums every kind of tensor over two ranks, one of which holds it
// plain: the sums stand in the right places and the gaps are as they were.
func TestLayouts(t *testing.T) {
	gs := fake.Groups(2, processgroup.Config{})
	defer closeAll(t, gs)
	for _, l := range layouts {
		t.Run(l.name, func(t *testing.T) {
			backing := count(24, 1)
			d := l.make(t, backing)
			want := slices.Clone(backing) // AsFortran has moved them
			require.Equal(t, len(l.at), d.Shape().TotalSize())
			b, err := dense.Buffer(d)
			if l.direct {
				require.NoError(t, err)
				require.Equal(t, len(l.at), b.Count)
			} else {
				require.ErrorIs(t, err, dense.ErrStrided)
				require.ErrorIs(t, err, goccl.ErrUnsupported)
				require.ErrorContains(t, err, "dense.Through")
			}
			other := on(count(len(l.at), 1000), len(l.at))
			w := dense.Wrap(gs[1]).AllReduce(other, goccl.Sum)
			require.NoError(t, dense.Through(t.Context(), d, func(b device.Buffer) processgroup.Work { return gs[0].AllReduce(b, goccl.Sum) }))
			require.NoError(t, w.Wait(t.Context()))

			for i, place := range l.at {
				want[place] += float32(i+1) * 1000
			}
			require.Equal(t, want, backing)
		})
	}
}

func closeAll(t *testing.T, gs []*processgroup.Group) {
	for _, g := range gs {
		require.NoError(t, g.Close())
	}
}

func TestZeroSizeAndScalars(t *testing.T) {
	gs := fake.Groups(2, processgroup.Config{})
	defer closeAll(t, gs)
	var works []processgroup.Work
	var scalars []*tensor.Dense
	for r, g := range gs {
		scalar := tensor.New(tensor.FromScalar(float64(r + 1)))
		scalars = append(scalars, scalar)
		works = append(works, dense.Wrap(g).AllReduce(scalar, goccl.Sum))
		b, err := dense.Buffer(scalar)
		require.NoError(t, err)
		require.Equal(t, 1, b.Count)
		for _, shape := range [][]int{{0}, {3, 0}, {0, 4}} {
			none, err := dense.New(g, goccl.F32, shape...)
			if err == nil {
				b, err = dense.Buffer(none)
				require.NoError(t, err)
				require.Zero(t, b.Count)
				works = append(works, dense.Wrap(g).AllReduce(none, goccl.Sum))
			}
			require.NoError(t, err)
		}
	}
	require.NoError(t, processgroup.WaitAll(t.Context(), works...))
	require.Equal(t, 3.0, scalars[0].Data())
	require.Equal(t, 3.0, scalars[1].Data())
}

// pointers is an element type that no other rank could read.
type pointers struct{ _ *int }

// ownHalf has the bits of a half and does not say so.
type ownHalf uint16

func TestRefusedTensors(t *testing.T) {
	masked := tensor.New(tensor.WithShape(2, 2), tensor.WithBacking(count(4, 1), []bool{true, false, false, false}))
	cases := map[string]struct {
		t    *tensor.Dense
		says string
		is   error
	}{
		"masked":   {masked, "masked", dense.ErrMasked},
		"nil":      {nil, "nil tensor", goccl.ErrInvalid},
		"strings":  {tensor.New(tensor.WithBacking([]string{"a", "b"}), tensor.WithShape(2)), "RegisterDType", goccl.ErrUnsupported},
		"bools":    {tensor.New(tensor.WithBacking([]bool{true, false}), tensor.WithShape(2)), "RegisterDType", goccl.ErrUnsupported},
		"int16":    {tensor.New(tensor.WithBacking([]int16{1, 2}), tensor.WithShape(2)), "int16", goccl.ErrUnsupported},
		"own half": {tensor.New(tensor.WithBacking([]ownHalf{1, 2}), tensor.WithShape(2)), "ownHalf", goccl.ErrUnsupported},
		"pointers": {tensor.New(tensor.WithBacking([]pointers{{}, {}}), tensor.WithShape(2)), "pointers", goccl.ErrUnsupported},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := dense.Buffer(c.t)
			require.ErrorIs(t, err, c.is)
			require.ErrorContains(t, err, c.says)
			require.ErrorIs(t, dense.Through(t.Context(), c.t, nil), c.is)

			// Through the group it is a refusal that the other rank hears of.
			gs := fake.Groups(2, processgroup.Config{})
			defer closeAll(t, gs)
			w := gs[1].AllReduce(device.SliceOf([]float32{1}), goccl.Sum)
			require.ErrorIs(t, dense.Wrap(gs[0]).AllReduce(c.t, goccl.Sum).Wait(t.Context()), c.is)
			require.ErrorContains(t, w.Wait(t.Context()), c.says)
		})
	}
}

func TestTensorInThePool(t *testing.T) {
	pooled := tensor.New(tensor.WithShape(2), tensor.Of(tensor.Float32))
	tensor.ReturnTensor(pooled)
	_, err := dense.Buffer(pooled)
	require.ErrorIs(t, err, goccl.ErrInvalid)
	require.ErrorContains(t, err, "given back to the pool")
}

// far is an engine whose memory the CPU must not touch.
type far struct{ tensor.StdEng }

func (far) AllocAccessible() bool { return false }

func TestDeviceTensors(t *testing.T) {
	memory := make([]float32, 6)
	at := device.SliceOf(memory)
	d := tensor.New(tensor.Of(tensor.Float32), tensor.WithShape(2, 3), tensor.WithEngine(far{}), tensor.FromMemory(at.Addr, 24))
	_, err := dense.Buffer(d)
	require.ErrorContains(t, err, "dense.BufferOn")
	id := device.ID{Kind: device.CUDA, Index: 1}
	b, err := dense.BufferOn(d, id)
	require.NoError(t, err)
	require.Equal(t, device.Buffer{Addr: at.Addr, Count: 6, DType: goccl.F32, Device: id, Owner: d}, b)
	_, err = dense.BufferOn(nil, id)
	require.ErrorIs(t, err, goccl.ErrInvalid)
}

func TestBufferDoesNotAllocate(t *testing.T) {
	d := on(count(6, 1), 2, 3)
	g := dense.Wrap(processgroup.New(processgroup.Config{Name: "g", Size: 2, Backend: fake.Immediate()}))
	defer g.Close()
	ctx := context.Background()
	require.NoError(t, g.AllReduce(d, goccl.Sum).Wait(ctx))
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = g.AllReduce(d, goccl.Sum).Wait(ctx) }))
}

func TestRegisterDType(t *testing.T) {
	type half uint16
	tt := func() *tensor.Dense { return tensor.New(tensor.WithBacking([]half{1, 2}), tensor.WithShape(2)) }
	require.NoError(t, dense.RegisterDType(half(0), goccl.F16))
	require.NoError(t, dense.RegisterDType(half(0), goccl.F16))
	b, err := dense.Buffer(tt())
	require.NoError(t, err)
	require.Equal(t, goccl.F16, b.DType)
	for _, bad := range []error{
		dense.RegisterDType(half(0), goccl.BF16),
		dense.RegisterDType(float32(0), goccl.I32),
		dense.RegisterDType(nil, goccl.F32),
		dense.RegisterDType(half(0), 0),
		dense.RegisterDType(uint8(0), goccl.F16),
		dense.RegisterDType("", goccl.U8),
		dense.RegisterDType(struct{ a, b uint8 }{}, goccl.F16),
	} {
		require.Error(t, bad)
	}
}

func TestEveryDTypeHasATensor(t *testing.T) {
	g := processgroup.New(processgroup.Config{Name: "g", Size: 1, Backend: fake.Immediate()})
	defer g.Close()
	for _, d := range goccl.DTypes() {
		x, err := dense.New(g, d, 2, 3)
		require.NoError(t, err)
		b, err := dense.Buffer(x)
		require.NoError(t, err)
		require.Equal(t, d, b.DType)
		require.Equal(t, 6, b.Count)
		require.True(t, reflect.ValueOf(x.Data()).Index(5).IsZero())
		view, err := dense.Tensor(b.Slice(2, 5), 3)
		require.NoError(t, err)
		v, err := dense.Buffer(view)
		require.NoError(t, err)
		require.Equal(t, b.Addr+uintptr(2*d.Size()), v.Addr)
	}
	scalar, err := dense.New(g, goccl.F32)
	require.NoError(t, err)
	require.True(t, scalar.Shape().IsScalar())
	for _, bad := range []error{
		second(dense.New(g, goccl.F8E4M3, 1)), second(dense.New(g, goccl.F32, -1)), second(dense.New(g, goccl.F32, 1<<40, 1<<40)),
		second(dense.Tensor(device.SliceOf([]float32{1, 2}), 3)),
		second(dense.Tensor(device.FromPointer(64, 1, goccl.F32, device.ID{Kind: device.CUDA}, nil), 1)),
	} {
		require.Error(t, bad)
	}
}

func second(_ *tensor.Dense, err error) error { return err }
