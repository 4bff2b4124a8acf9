package train

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/tensor"

	"github.com/goccl/goccl/examples/ddp/mnist"
	"github.com/goccl/goccl/examples/ddp/model"
	"github.com/goccl/goccl/examples/ddp/options"
)

func TestStridedCoversTheSameBatches(t *testing.T) {
	const n, batch = 103, 12
	whole := slices.Collect(Strided(0, 1)(n, 9, 2))
	sorted := slices.Sorted(slices.Values(whole))
	for i, v := range sorted {
		require.Equal(t, i, v)
	}
	for _, size := range []int{2, 3, 4} {
		parts := make([][]int, size)
		for rank := range parts {
			parts[rank] = slices.Collect(Strided(rank, size)(n, 9, 2))
		}
		per := batch / size
		for step := range n / batch {
			var got []int
			for _, p := range parts {
				got = append(got, p[step*per:(step+1)*per]...)
			}
			require.ElementsMatch(t, whole[step*batch:(step+1)*batch], got, "size %d step %d", size, step)
		}
	}
	require.NotEqual(t, whole, slices.Collect(Strided(0, 1)(n, 9, 3)), "another epoch")
	require.NotEqual(t, whole, slices.Collect(Strided(0, 1)(n, 8, 2)), "another seed")
	for first := range Strided(1, 4)(n, 9, 2) { // a reader may stop early
		require.Equal(t, whole[1], first)
		break
	}
}

func TestAugment(t *testing.T) {
	seen := map[Shift]int{}
	differ := 0
	for sample := range 9000 {
		s := Augment(1, 0, sample)
		require.Equal(t, s, Augment(1, 0, sample))
		seen[s]++
		if s != Augment(1, 1, sample) || s != Augment(2, 0, sample) {
			differ++
		}
	}
	require.Len(t, seen, 9)
	for s, n := range seen {
		require.InDelta(t, 1000, n, 150, "%v", s)
	}
	require.Greater(t, differ, 8000)
}

func TestScaler(t *testing.T) {
	train, _ := load(t)
	s := digits().scaler
	for _, at := range []struct{ row, col int }{{2, 5}, {7, 7}, {10, 6}} {
		var ink int
		for i := range train.Len() {
			image := train.Image(i)
			for _, y := range []int{2 * at.row, 2*at.row + 1} {
				ink += int(image[y*mnist.Side+2*at.col]) + int(image[y*mnist.Side+2*at.col+1])
			}
		}
		want := float64(ink) / float64(4*255*train.Len()) * inputScale
		require.InDelta(t, want, s.mean[at.row*half+at.col], 1e-6)
		require.Greater(t, want, 0.05)
	}
	var square float64
	dst := make([]float32, Inputs)
	for i := range 1000 {
		s.Fill(dst, train.Image(i), Shift{})
		for _, v := range dst {
			square += float64(v) * float64(v) / float64(1000*Inputs)
		}
	}
	require.InDelta(t, 1, math.Sqrt(square), 0.35)
}

func TestScalerShift(t *testing.T) {
	blank := &Scaler{}
	image := make([]byte, mnist.Pixels)
	image[5*mnist.Side+9] = 255 // row 5, column 9: pooled to row 2, column 4
	lit := func(s Shift) (at int) {
		dst := make([]float32, Inputs)
		blank.Fill(dst, image, s)
		at = slices.IndexFunc(dst, func(v float32) bool { return v != 0 })
		require.GreaterOrEqual(t, at, 0)
		require.InDelta(t, inputScale/4.0, dst[at], 1e-6)
		return at
	}
	require.Equal(t, 2*half+4, lit(Shift{}))
	require.Equal(t, 2*half+5, lit(Shift{DX: 1}))
	require.Equal(t, 3*half+4, lit(Shift{DY: 1}))
	require.Equal(t, 2*half+4, lit(Shift{DX: -1, DY: -1}))
	corner := make([]byte, mnist.Pixels)
	corner[0] = 255
	dst := make([]float32, Inputs)
	blank.Fill(dst, corner, Shift{DX: -1})
	require.Equal(t, make([]float32, Inputs), dst, "ink moved out of the image is gone")
}

func TestSGD(t *testing.T) {
	p := []model.Param{{
		Value: tensor.New(tensor.WithBacking([]float32{1, 2})),
		Grad:  tensor.New(tensor.WithBacking([]float32{0.5, -1})),
	}}
	s := NewSGD(p, 0.5)
	s.Step(p, 0.1)
	require.InDeltaSlice(t, []float32{0.95, 2.1}, p[0].Value.Float32s(), 1e-6)
	s.Step(p, 0.1) // v = 0.5·v + g
	require.InDeltaSlice(t, []float32{0.875, 2.25}, p[0].Value.Float32s(), 1e-6)
}

func TestSchedule(t *testing.T) {
	s := Schedule{Peak: 0.2, Warmup: 4, Steps: 14}
	want := []float64{0.04, 0.08, 0.12, 0.16, 0.2}
	for step, r := range want {
		require.InDelta(t, r, s.Rate(step), 1e-12)
	}
	require.InDelta(t, 0.1, s.Rate(9), 1e-12)
	require.InDelta(t, 0, s.Rate(14), 1e-12)
	for step := 5; step < 14; step++ {
		require.Less(t, s.Rate(step), s.Rate(step-1))
		require.Positive(t, s.Rate(step))
	}
}

func TestCompare(t *testing.T) {
	make2 := func(v float32) []Value { return []Value{{Data: []float32{1, v}}, {Data: []float32{3}}} }
	a, b := make2(2), make2(2.5)
	require.Equal(t, []float32{1, 2, 3}, Snapshot(a))
	require.Equal(t, Hash(a), Hash(make2(2)))
	require.NotEqual(t, Hash(a), Hash(b))
	d, err := Difference(Snapshot(a), Snapshot(b))
	require.NoError(t, err)
	require.Equal(t, 0.5, d)
	d, err = Difference(Snapshot(a), Snapshot(make2(float32(math.NaN()))))
	require.NoError(t, err)
	require.True(t, math.IsNaN(d))
	_, err = Difference(Snapshot(a), Snapshot(b)[1:])
	require.EqualError(t, err, "train: snapshots of 3 and 2 elements")
}

func TestSizes(t *testing.T) {
	m, err := model.New(Sizes(), 1, 0)
	require.NoError(t, err)
	total := 0
	for _, p := range m.Params() {
		total += p.Bytes()
	}
	require.GreaterOrEqual(t, total, 1_572_864, "gradients of at least 1.5 MiB")
	first := m.Params()[0].Bytes() + m.Params()[1].Bytes()
	require.Less(t, first, total/4, "the first layer must not be most of the bytes")
	// Buckets fill in the order in which gradients are ready, each up to its limit.
	o := options.Default()
	var buckets []int64
	var open int64
	for i := range slices.Backward(m.Params()) {
		open += int64(m.Params()[i].Bytes())
		if limit := o.BucketBytes(); open >= limit || len(buckets) == 0 && open >= o.FirstBucketBytes() || i == 0 {
			buckets, open = append(buckets, open), 0
		}
	}
	require.Equal(t, []int64{528808, 976640, 698496, 252160}, buckets)
}
