package kernels

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/device/kernels/abi"
)

// onMachine tries every kernel on m.
func onMachine(t *testing.T, m machine) {
	t.Run("pattern", func(t *testing.T) { testPattern(t, m) })
	t.Run("compare", func(t *testing.T) { testCompare(t, m) })
	t.Run("scale, axpy, sgd", func(t *testing.T) { testUpdates(t, m) })
	t.Run("matmul", func(t *testing.T) { testMatmul(t, m) })
	t.Run("bias", func(t *testing.T) { testBias(t, m) })
	t.Run("sum rows", func(t *testing.T) { testSumRows(t, m) })
	t.Run("xent", func(t *testing.T) { testXent(t, m) })
	t.Run("a training step", func(t *testing.T) { testStep(t, m) })
	t.Run("xent of nonsense", func(t *testing.T) { testXentNonsense(t, m) })
}

// counts are numbers of elements around the sizes of blocks and grids.
var counts = []int{0, 1, 255, 256, 257, 5003}

// grids are the Launch itself and one that covers the elements in other portions.
func grids(l Launch) []Launch {
	odd := l
	odd.Blocks, odd.Threads = 3, 64
	return []Launch{l, odd}
}

// normal draws n numbers, some of them zero.
func normal(seed uint64, n int) []float32 {
	rng := rand.New(rand.NewPCG(seed, 7))
	x := make([]float32, n)
	for i := range x {
		if rng.IntN(5) > 0 {
			x[i] = float32(rng.NormFloat64())
		}
	}
	return x
}

// bits makes NaNs and zeros comparable.
func bits(x []float32) []uint32 {
	b := make([]uint32, len(x))
	for i, v := range x {
		b[i] = math.Float32bits(v)
	}
	return b
}

// mismatches reads a count.
func mismatches(t *testing.T, r memory[abi.Mismatches]) abi.Mismatches {
	t.Helper()
	return r.get(t)[0]
}

func testPattern(t *testing.T, m machine) {
	const rank, first = 5, 1<<33 + 77
	for _, n := range counts {
		x := put(t, m, make([]float32, n))
		fill := abi.FillArgs{X: x.addr, N: uint64(n), First: first, Rank: rank}
		for _, l := range grids(FillPattern(&fill)) {
			start(t, m, l, nil, &fill)
			for i, v := range x.get(t) {
				require.Equal(t, Pattern(rank, first+uint64(i)), v)
			}
		}
		const ranks = 9
		sums := make([]float32, n)
		for i := range sums {
			sums[i] = PatternSum(rank, ranks, first+uint64(i))
		}
		check := abi.CheckArgs{N: uint64(n), First: first, Rank: rank, Ranks: ranks}
		l, err := CheckPattern(&check)
		for _, l := range grids(l) {
			check.X = put(t, m, sums).addr
			r := put(t, m, []abi.Mismatches{NoMismatches()})
			check.Result = r.addr
			start(t, m, l, err, &check)
			require.Equal(t, NoMismatches(), mismatches(t, r))
			if n < 200 {
				continue
			}
			wrong := append([]float32{}, sums...)
			wrong[n-1]++
			wrong[131] = float32(math.NaN())
			wrong[140] = sums[141]
			check.X = put(t, m, wrong).addr
			start(t, m, l, err, &check)
			start(t, m, l, err, &check)
			require.Equal(t, abi.Mismatches{Count: 6, First: 131}, mismatches(t, r), "two launches add up")
		}
	}
}

func testCompare(t *testing.T, m machine) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range []struct {
		x, y               float32
		absolute, relative float32
		same               bool
	}{
		{1, 1, 0, 0, true},
		{1, math.Nextafter32(1, 2), 0, 0, false},
		{1, math.Nextafter32(1, 2), 1e-6, 0, true},
		{100, 101, 0.5, 0, false},
		{100, 101, 0.5, 0.005, true},
		{-100, 100, 0, 0.01, false},
		{nan, nan, 0, 0, true},
		{nan, 1, inf, 0, false},
		{1, nan, inf, 0, false},
		{inf, inf, 0, 0, true},
		{-inf, inf, 1, 1, false},
		{inf, 1, 1, 1, false},
		{1, inf, 1, 1, false},
		{0, float32(math.Copysign(0, -1)), 0, 0, true},
	} {
		n := 300
		x, y := normal(1, n), normal(1, n)
		x[257], y[257] = c.x, c.y
		r := put(t, m, []abi.Mismatches{NoMismatches()})
		args := abi.CompareArgs{X: put(t, m, x).addr, Y: put(t, m, y).addr, Result: r.addr, N: uint64(n), Absolute: c.absolute, Relative: c.relative}
		start(t, m, Compare(&args), nil, &args)
		want := abi.Mismatches{Count: 1, First: 257}
		if c.same {
			want = NoMismatches()
		}
		require.Equal(t, want, mismatches(t, r), "%+v", c)
	}
}

func testUpdates(t *testing.T, m machine) {
	for _, n := range counts {
		x, y, g := normal(1, n), normal(2, n), normal(3, n)
		scale := abi.ScaleArgs{N: uint64(n), Factor: 1.0 / 3}
		for _, l := range grids(Scale(&scale)) {
			a := put(t, m, x)
			scale.X = a.addr
			start(t, m, l, nil, &scale)
			want := make([]float32, n)
			for i := range want {
				want[i] = x[i] * scale.Factor
			}
			require.Equal(t, bits(want), bits(a.get(t)))
		}
		axpy := abi.AxpyArgs{N: uint64(n), A: -0.7}
		for _, l := range grids(Axpy(&axpy)) {
			a, b := put(t, m, x), put(t, m, y)
			axpy.X, axpy.Y = a.addr, b.addr
			start(t, m, l, nil, &axpy)
			want := make([]float32, n)
			for i := range want {
				want[i] = y[i] + float32(axpy.A*x[i])
			}
			require.Equal(t, bits(want), bits(b.get(t)))
			require.Equal(t, bits(x), bits(a.get(t)))
		}
		sgd := abi.SgdArgs{N: uint64(n), Rate: 0.01, Momentum: 0.9}
		for _, l := range grids(SGD(&sgd)) {
			value, velocity := put(t, m, x), put(t, m, y)
			sgd.Value, sgd.Velocity, sgd.Grad = value.addr, velocity.addr, put(t, m, g).addr
			start(t, m, l, nil, &sgd)
			wantX, wantV := make([]float32, n), make([]float32, n)
			for i := range wantX {
				wantV[i] = float32(sgd.Momentum*y[i]) + g[i]
				wantX[i] = x[i] - float32(sgd.Rate*wantV[i])
			}
			require.Equal(t, bits(wantV), bits(velocity.get(t)))
			require.Equal(t, bits(wantX), bits(value.get(t)))
		}
	}
}
