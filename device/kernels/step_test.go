package kernels

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/device/kernels/abi"
)

const knee = 0.5

// perceptron is a small multilayer perceptron in the memory of a machine, put
// together from the kernels as a training program would.
type perceptron struct {
	m      machine
	sizes  []int
	batch  int
	w, b   []memory[float32] // of each layer
	dw, db []memory[float32]
	x      []memory[float32] // inputs of each layer, and the logits
	dx     []memory[float32]
}

func newPerceptron(t *testing.T, m machine, sizes []int, batch int, input []float32) *perceptron {
	p := &perceptron{m: m, sizes: sizes, batch: batch, x: []memory[float32]{put(t, m, input)}, dx: []memory[float32]{{}}}
	for i, out := range sizes[1:] {
		w, b := normal(uint64(10+i), sizes[i]*out), normal(uint64(20+i), out)
		p.w, p.b = append(p.w, put(t, m, w)), append(p.b, put(t, m, b))
		p.dw, p.db = append(p.dw, put(t, m, w)), append(p.db, put(t, m, b)) // to be overwritten
		p.x, p.dx = append(p.x, put(t, m, make([]float32, batch*out))), append(p.dx, put(t, m, make([]float32, batch*out)))
	}
	return p
}

func (p *perceptron) matmul(t *testing.T, a, b, c memory[float32], m, n, k int, flags uint32) {
	args := abi.MatmulArgs{A: a.addr, B: b.addr, C: c.addr, M: uint32(m), N: uint32(n), K: uint32(k), Flags: flags, Alpha: 1}
	l, err := Matmul(&args)
	start(t, p.m, l, err, &args)
}

// forward computes the logits.
func (p *perceptron) forward(t *testing.T) {
	for i := range p.w {
		in, out := p.sizes[i], p.sizes[i+1]
		p.matmul(t, p.x[i], p.w[i], p.x[i+1], p.batch, out, in, 0)
		args := abi.BiasArgs{X: p.x[i+1].addr, Bias: p.b[i].addr, Rows: uint32(p.batch), Cols: uint32(out), Knee: knee}
		if i == len(p.w)-1 {
			args.Knee = 0
		}
		l, err := Bias(&args)
		start(t, p.m, l, err, &args)
	}
}

// backward computes the gradients of the mean loss, and returns its sum.
func (p *perceptron) backward(t *testing.T, labels []uint8) abi.XentSum {
	last := len(p.w)
	row, sum := put(t, p.m, make([]abi.XentRow, p.batch)), put(t, p.m, make([]abi.XentSum, 1))
	xent := abi.XentArgs{Logits: p.x[last].addr, Grad: p.dx[last].addr, Labels: put(t, p.m, labels).addr, Row: row.addr,
		Rows: uint32(p.batch), Classes: uint32(p.sizes[last]), Batch: uint32(p.batch)}
	l, err := SoftmaxXent(&xent)
	start(t, p.m, l, err, &xent)
	total := abi.XentSumArgs{Row: row.addr, Sum: sum.addr, Rows: uint32(p.batch)}
	start(t, p.m, XentSum(&total), nil, &total)
	for i := last - 1; i >= 0; i-- {
		in, out := p.sizes[i], p.sizes[i+1]
		bias := abi.SumRowsArgs{X: p.dx[i+1].addr, Sum: p.db[i].addr, Rows: uint32(p.batch), Cols: uint32(out)}
		start(t, p.m, SumRows(&bias), nil, &bias)
		p.matmul(t, p.x[i], p.dx[i+1], p.dw[i], in, out, p.batch, abi.MatmulTransposeA)
		if i == 0 {
			break
		}
		p.matmul(t, p.dx[i+1], p.w[i], p.dx[i], p.batch, in, out, abi.MatmulTransposeB)
		relu := abi.ReluGradArgs{Grad: p.dx[i].addr, Out: p.x[i].addr, N: uint64(p.batch * in), Knee: knee}
		l, err := SmoothReLUGrad(&relu)
		start(t, p.m, l, err, &relu)
	}
	return sum.get(t)[0]
}

// lossOf is the sum of the losses of the same perceptron, in float64 from the
// definition.
func lossOf(sizes []int, w, b [][]float64, input []float32, labels []uint8) (total float64) {
	for s, label := range labels {
		var x []float64
		for _, v := range input[s*sizes[0] : (s+1)*sizes[0]] {
			x = append(x, float64(v))
		}
		for i, out := range sizes[1:] {
			y := make([]float64, out)
			for o := range y {
				y[o] = b[i][o]
				for j, v := range x {
					y[o] += v * w[i][j*out+o]
				}
				if i == len(sizes)-2 {
					continue
				}
				if z := y[o]; z <= 0 {
					y[o] = 0
				} else if z < knee {
					y[o] = z * z / (2 * knee)
				} else {
					y[o] = z - knee/2
				}
			}
			x = y
		}
		var sum float64
		for _, v := range x {
			sum += math.Exp(v - x[label])
		}
		total += math.Log(sum)
	}
	return total
}

// testStep holds the gradients of all parameters against differences of the loss,
// and a step of gradient descent against its promise: the loss falls.
func testStep(t *testing.T, m machine) {
	sizes, labels := []int{6, 9, 70, 4}, []uint8{3, 0, 1, 2, 3}
	batch := len(labels)
	input := normal(1, batch*sizes[0])
	p := newPerceptron(t, m, sizes, batch, input)
	double := func(from []memory[float32]) (all [][]float64) {
		for _, x := range from {
			d := make([]float64, x.n)
			for i, v := range x.get(t) {
				d[i] = float64(v)
			}
			all = append(all, d)
		}
		return all
	}
	w, b := double(p.w), double(p.b)
	loss := func() float64 { return lossOf(sizes, w, b, input, labels) }
	p.forward(t)
	before := p.backward(t, labels)
	require.InEpsilon(t, loss(), before.Loss, 1e-5)

	for _, kind := range []struct {
		values    [][]float64
		gradients []memory[float32]
	}{{w, p.dw}, {b, p.db}} {
		for i, g := range double(kind.gradients) {
			for j, got := range g {
				const h = 1e-4
				x := &kind.values[i][j]
				was := *x
				*x = was + h
				up := loss()
				*x = was - h
				down := loss()
				*x = was
				want := (up - down) / (2 * h) / float64(batch)
				require.InDelta(t, want, got, 2e-4*(1+math.Abs(want)), "layer %d, parameter %d", i, j)
			}
		}
	}
	for i := range p.w {
		for _, x := range [][2]memory[float32]{{p.w[i], p.dw[i]}, {p.b[i], p.db[i]}} {
			args := abi.SgdArgs{Value: x[0].addr, Velocity: put(t, m, make([]float32, x[0].n)).addr, Grad: x[1].addr, N: uint64(x[0].n), Rate: 0.01, Momentum: 0.9}
			start(t, m, SGD(&args), nil, &args)
		}
	}
	p.forward(t)
	require.Less(t, p.backward(t, labels).Loss, before.Loss)
}
