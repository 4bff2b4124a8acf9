package kernels

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/device/kernels/abi"
)

// fma is a*b + c rounded once to float32. The product is exact in float64; where
// the sum is not, rounding it to odd first keeps the second rounding right.
func fma(a, b, c float32) float32 {
	p := float64(a) * float64(b)
	s := p + float64(c)
	v := s - p
	lost := (p - (s - v)) + (float64(c) - v)
	if u := math.Float64bits(s); lost != 0 && u&1 == 0 {
		if (lost > 0) == (s > 0) {
			u++
		} else {
			u--
		}
		s = math.Float64frombits(u)
	}
	return float32(s)
}

func TestFMA(t *testing.T) {
	const e = 1.0 / (1 << 12)
	require.Equal(t, float32(1+2*e+e*e), fma(1+e, 1+e, 0))
	require.Equal(t, float32(e*e), fma(1+e, 1+e, -(1+2*e)))
	// 131585 * 130561 is 2^34 + 1: half a unit of 1 and a trifle, which float64 loses.
	require.Equal(t, math.Nextafter32(1, 2), fma(131585.0/(1<<29), 130561.0/(1<<29), 1))
	require.Equal(t, float32(1), float32(131585.0/(1<<29)*float64(130561.0/(1<<29))+1), "the trifle is not lost without fma")
	tie := float32(1.0 / (1 << 24))
	require.Equal(t, float32(1), fma(tie, 1, 1))
	require.Equal(t, math.Nextafter32(1, 2), fma(tie, math.Nextafter32(1, 2), 1))
	require.Equal(t, float32(1), fma(tie, math.Nextafter32(1, 0), 1))
}

// product is C = alpha * op(A) * op(B) as matmul_f32 promises it.
func product(a, b []float32, m, n, k int, transA, transB bool, alpha float32) []float32 {
	c := make([]float32, m*n)
	for i := range m {
		for j := range n {
			var sum float32
			for l := range k {
				x, y := i*k+l, l*n+j
				if transA {
					x = l*m + i
				}
				if transB {
					y = j*k + l
				}
				sum = fma(a[x], b[y], sum)
			}
			c[i*n+j] = alpha * sum
		}
	}
	return c
}

func testMatmul(t *testing.T, mach machine) {
	for _, s := range [][3]int{{1, 1, 1}, {64, 64, 16}, {65, 63, 17}, {63, 65, 33}, {130, 70, 100}, {1, 200, 3}, {5, 5, 0}, {0, 5, 3}, {5, 0, 3}} {
		m, n, k := s[0], s[1], s[2]
		a, b := normal(1, m*k), normal(2, k*n)
		for flags := range abi.MatmulTransposeA + abi.MatmulTransposeB + 1 {
			c := put(t, mach, normal(3, m*n))
			args := abi.MatmulArgs{A: put(t, mach, a).addr, B: put(t, mach, b).addr, C: c.addr,
				M: uint32(m), N: uint32(n), K: uint32(k), Flags: flags, Alpha: 0.3}
			l, err := Matmul(&args)
			start(t, mach, l, err, &args)
			want := product(a, b, m, n, k, flags&abi.MatmulTransposeA != 0, flags&abi.MatmulTransposeB != 0, args.Alpha)
			require.Equal(t, bits(want), bits(c.get(t)), "%v, flags %d", s, flags)
		}
	}
}

// smoothReLU and its slope are written from their definition.
func smoothReLU(z, knee float32) float32 {
	switch {
	case z <= 0:
		return 0
	case z < knee:
		return z * z * (1 / (2 * knee))
	}
	return z - knee/2
}

func testBias(t *testing.T, m machine) {
	for _, shape := range [][2]int{{1, 1}, {7, 3}, {32, 320}, {0, 4}} {
		rows, cols := shape[0], shape[1]
		x, b := normal(4, rows*cols), normal(5, cols)
		for _, knee := range []float32{0, 0.5, 0.3} {
			args := abi.BiasArgs{Bias: put(t, m, b).addr, Rows: uint32(rows), Cols: uint32(cols), Knee: knee}
			l, err := Bias(&args)
			want := make([]float32, len(x))
			for i := range x {
				want[i] = x[i] + b[i%cols]
				if knee > 0 {
					want[i] = smoothReLU(want[i], knee)
				}
			}
			for _, l := range grids(l) {
				y := put(t, m, x)
				args.X = y.addr
				start(t, m, l, err, &args)
				require.Equal(t, bits(want), bits(y.get(t)), "%v, knee %v", shape, knee)
			}
			if knee > 0 {
				testReluGrad(t, m, x, want, knee)
			}
		}
	}
}

// testReluGrad checks the way back for inputs z of the activation whose outputs are
// out.
func testReluGrad(t *testing.T, m machine, grad, out []float32, knee float32) {
	args := abi.ReluGradArgs{Out: put(t, m, out).addr, N: uint64(len(out)), Knee: knee}
	l, err := SmoothReLUGrad(&args)
	want := append([]float32{}, grad...)
	for i, y := range out {
		switch {
		case y <= 0:
			want[i] = 0
		case y < knee/2:
			want[i] *= float32(math.Sqrt(float64(y * (2 / knee))))
		}
	}
	for _, l := range grids(l) {
		g := put(t, m, grad)
		args.Grad = g.addr
		start(t, m, l, err, &args)
		require.Equal(t, bits(want), bits(g.get(t)))
	}
}

func testSumRows(t *testing.T, m machine) {
	for _, shape := range [][2]int{{1, 1}, {100, 3}, {33, 700}, {0, 4}, {4, 0}} {
		rows, cols := shape[0], shape[1]
		x := normal(6, rows*cols)
		sum := put(t, m, normal(7, cols))
		args := abi.SumRowsArgs{X: put(t, m, x).addr, Sum: sum.addr, Rows: uint32(rows), Cols: uint32(cols)}
		for _, l := range grids(SumRows(&args)) {
			start(t, m, l, nil, &args)
			want := make([]float32, cols)
			for i, v := range x {
				want[i%cols] += v
			}
			require.Equal(t, bits(want), bits(sum.get(t)), "%v", shape)
		}
	}
}

// xentOf is the loss of one row and the gradient before the division by batch, in
// float64.
func xentOf(row []float32, label int) (loss float64, grad []float64, best int) {
	for j, v := range row {
		if v > row[best] {
			best = j
		}
	}
	var sum float64
	for _, v := range row {
		sum += math.Exp(float64(v) - float64(row[best]))
	}
	for j, v := range row {
		g := math.Exp(float64(v)-float64(row[best])) / sum
		if j == label {
			g--
		}
		grad = append(grad, g)
	}
	return math.Log(sum) - (float64(row[label]) - float64(row[best])), grad, best
}

func testXent(t *testing.T, m machine) {
	const rows = 37
	for _, classes := range []int{1, 2, 10, 32, 33, 100} {
		x := normal(uint64(classes), rows*classes)
		labels := make([]uint8, rows)
		for r := range labels {
			labels[r] = uint8(r * 7 % classes)
		}
		for j := range classes {
			x[j] = 2               // all equal: the first is the best
			x[classes+j] *= 1e4    // exponentials would overflow
			x[2*classes+j] += -1e4 // or vanish
		}
		const batch = 64
		args := abi.XentArgs{Labels: put(t, m, labels).addr, Rows: rows, Classes: uint32(classes), Batch: batch}
		l, err := SoftmaxXent(&args)
		few := l
		few.Blocks = 2
		var sums []abi.XentSum
		for _, l := range []Launch{l, few} {
			logits, grad, row := put(t, m, x), put(t, m, normal(9, len(x))), put(t, m, make([]abi.XentRow, rows))
			args.Logits, args.Grad, args.Row = logits.addr, grad.addr, row.addr
			start(t, m, l, err, &args)
			want := requireXent(t, x, labels, classes, batch, grad.get(t), row.get(t))
			require.Equal(t, bits(x), bits(logits.get(t)))
			apart := grad.get(t)
			args.Grad = logits.addr // in place
			start(t, m, l, err, &args)
			require.Equal(t, bits(apart), bits(logits.get(t)))

			sum := put(t, m, make([]abi.XentSum, 1))
			sumArgs := abi.XentSumArgs{Row: row.addr, Sum: sum.addr, Rows: rows}
			start(t, m, XentSum(&sumArgs), nil, &sumArgs)
			sums = append(sums, sum.get(t)[0])
			require.InEpsilon(t, want.Loss+1, sums[0].Loss+1, 1e-12)
			require.Equal(t, want.Correct, sums[0].Correct)
		}
		require.Equal(t, sums[0], sums[1], "the grid must not change a bit")
	}
}

// requireXent checks what softmax_xent_f32 wrote and returns the sum of it.
func requireXent(t *testing.T, x []float32, labels []uint8, classes, batch int, grad []float32, rows []abi.XentRow) (sum abi.XentSum) {
	t.Helper()
	for r, label := range labels {
		loss, g, best := xentOf(x[r*classes:(r+1)*classes], int(label))
		correct := uint32(0)
		if best == int(label) {
			correct = 1
		}
		require.Equal(t, uint32(best), rows[r].Best, "row %d of %d classes", r, classes)
		require.Equal(t, correct, rows[r].Correct)
		require.InDelta(t, loss, rows[r].Loss, 1e-12*(1+math.Abs(loss)))
		for j, v := range g {
			// Each of the two terms is rounded to float32.
			require.InDelta(t, v/float64(batch), grad[r*classes+j], 2e-7/float64(batch), "row %d class %d of %d", r, j, classes)
		}
		sum.Loss += loss
		sum.Correct += uint64(correct)
	}
	return sum
}

// testXentNonsense: labels that are no class and logits that are no numbers are seen
// in loss and gradient, and touch no other row.
func testXentNonsense(t *testing.T, m machine) {
	const rows, classes = 3, 10
	x := normal(1, rows*classes)
	x[2*classes+3] = float32(math.NaN())
	grad, row := put(t, m, make([]float32, len(x))), put(t, m, make([]abi.XentRow, rows))
	args := abi.XentArgs{Logits: put(t, m, x).addr, Grad: grad.addr, Row: row.addr, Labels: put(t, m, []uint8{classes, 4, 5}).addr,
		Rows: rows, Classes: classes, Batch: rows}
	l, err := SoftmaxXent(&args)
	start(t, m, l, err, &args)
	g, r := grad.get(t), row.get(t)
	requireXent(t, x[classes:2*classes], []uint8{4}, classes, rows, g[classes:2*classes], r[1:2])
	for _, bad := range []int{0, 2} {
		require.True(t, math.IsNaN(r[bad].Loss))
		for j := range classes {
			require.True(t, math.IsNaN(float64(g[bad*classes+j])), "row %d class %d", bad, j)
		}
	}
	require.Zero(t, r[0].Correct)
}
