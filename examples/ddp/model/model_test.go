package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/tensor"
)

// filled makes a model with a batch of random inputs, of which some are zero, and
// labels.
func filled(t *testing.T, sizes []int, batch int) (*MLP, []uint8) {
	t.Helper()
	m, err := New(sizes, batch, 3)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range m.Input() {
		if rng.IntN(3) > 0 {
			m.Input()[i] = float32(rng.NormFloat64())
		}
	}
	for _, p := range m.Params() { // biases other than zero
		if p.Value.Dims() == 1 {
			for j := range floats(p.Value) {
				floats(p.Value)[j] = float32(0.1 * rng.NormFloat64())
			}
		}
	}
	labels := make([]uint8, batch)
	for i := range labels {
		labels[i] = uint8(rng.IntN(m.Classes()))
	}
	return m, labels
}

// reference is the mean loss computed in float64, straight from the definition,
// from values of all parameters in order.
func reference(sizes []int, params [][]float64, input []float32, labels []uint8) float64 {
	var total float64
	for s, label := range labels {
		x := make([]float64, sizes[0])
		for i := range x {
			x[i] = float64(input[s*sizes[0]+i])
		}
		for l, out := range sizes[1:] {
			y := make([]float64, out)
			for o := range y {
				y[o] = params[2*l+1][o]
				for i, v := range x {
					y[o] += v * params[2*l][i*out+o]
				}
				if l < len(sizes)-2 {
					y[o] = activation(y[o])
				}
			}
			x = y
		}
		var sum float64
		for _, v := range x {
			sum += math.Exp(v)
		}
		total += math.Log(sum) - x[label]
	}
	return total / float64(len(labels))
}

// activation is the smooth ReLU as its definition has it.
func activation(z float64) float64 {
	if z <= 0 {
		return 0
	}
	if z < knee {
		return z * z / (2 * knee)
	}
	return z - knee/2
}

func TestGradientsAgainstDifferences(t *testing.T) {
	sizes := []int{7, 6, 5, 4}
	m, labels := filled(t, sizes, 9)
	require.NoError(t, m.Forward())
	loss, _, err := m.Loss(labels)
	require.NoError(t, err)
	require.NoError(t, m.Backward(nil))
	params := make([][]float64, len(m.Params()))
	for i, p := range m.Params() {
		for _, v := range floats(p.Value) {
			params[i] = append(params[i], float64(v))
		}
	}
	require.InDelta(t, reference(sizes, params, m.Input(), labels), loss, 1e-6)
	const h = 1e-6
	for i, p := range m.Params() {
		for j, g := range floats(p.Grad) {
			v := params[i][j]
			params[i][j] = v + h
			up := reference(sizes, params, m.Input(), labels)
			params[i][j] = v - h
			down := reference(sizes, params, m.Input(), labels)
			params[i][j] = v
			require.InDelta(t, (up-down)/(2*h), float64(g), 2e-6, "%s[%d]", p.Name, j)
		}
	}
}

func TestBackwardOrder(t *testing.T) {
	m, labels := filled(t, []int{5, 4, 3, 2}, 3)
	names := []string{"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias", "fc3.weight", "fc3.bias"}
	for i, p := range m.Params() {
		require.Equal(t, names[i], p.Name)
		require.Equal(t, p.Value.Shape(), p.Grad.Shape())
		require.Equal(t, 4*p.Count(), p.Bytes())
	}
	require.NoError(t, m.Forward())
	_, _, err := m.Loss(labels)
	require.NoError(t, err)
	var order []int
	final := map[int][]float32{}
	require.NoError(t, m.Backward(func(i int) {
		order = append(order, i)
		final[i] = append([]float32(nil), floats(m.Params()[i].Grad)...)
	}))
	require.Equal(t, []int{5, 4, 3, 2, 1, 0}, order)
	for i, p := range m.Params() {
		require.Equal(t, floats(p.Grad), final[i], "%s changed after it was ready", p.Name)
	}
}

// TestSetGrad lets all gradients be views into one buffer, as in a bucket.
func TestSetGrad(t *testing.T) {
	sizes := []int{6, 5, 1, 3}
	m, labels := filled(t, sizes, 4)
	want, _ := filled(t, sizes, 4)
	total := 0
	for _, p := range m.Params() {
		total += p.Count()
	}
	flat := zeros(total)
	for j := range floats(flat) {
		floats(flat)[j] = float32(math.NaN()) // what was there must not count
	}
	var offsets []int
	offset := 0
	for i, p := range m.Params() {
		view, err := flat.Slice(tensor.S(offset, offset+p.Count()))
		require.NoError(t, err)
		g := view.(*tensor.Dense)
		require.NoError(t, g.Reshape(p.Value.Shape().Clone()...))
		require.NoError(t, m.SetGrad(i, g))
		offsets = append(offsets, offset)
		offset += p.Count()
	}
	for _, model := range []*MLP{m, want} {
		require.NoError(t, model.Forward())
		_, _, err := model.Loss(labels)
		require.NoError(t, err)
		require.NoError(t, model.Backward(nil))
	}
	for i, p := range want.Params() {
		require.Equal(t, floats(p.Grad), floats(flat)[offsets[i]:offsets[i]+p.Count()], p.Name)
	}
}

func TestSetGradRefuses(t *testing.T) {
	m, _ := filled(t, []int{4, 3}, 2)
	transposed := zeros(3, 4)
	require.NoError(t, transposed.T())
	gaps, err := zeros(4, 6).Slice(nil, tensor.S(0, 3))
	require.NoError(t, err)
	for want, err := range map[string]error{
		"model: no parameter 2: there are 2":                               m.SetGrad(2, zeros(3)),
		"model: gradient of fc1.weight has shape (3, 4), want (4, 3)":      m.SetGrad(0, zeros(3, 4)),
		"model: gradient of fc1.bias is float64, want float32":             m.SetGrad(1, tensor.New(tensor.Of(tensor.Float64), tensor.WithShape(3))),
		"model: gradient of fc1.weight must be contiguous and row-major":   m.SetGrad(0, transposed),
		"model: gradient of fc1.weight must be contiguous and row-major\t": fmt.Errorf("%w\t", m.SetGrad(0, gaps.(*tensor.Dense))),
	} {
		require.EqualError(t, err, want)
	}
}

// TestDeterministic computes the same gradients on one and on several threads.
func TestDeterministic(t *testing.T) {
	grads := func(procs int) [][]float32 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		m, labels := filled(t, []int{150, 200, 140, 10}, 130) // several blocks each way
		require.NoError(t, m.Forward())
		_, _, err := m.Loss(labels)
		require.NoError(t, err)
		require.NoError(t, m.Backward(nil))
		var out [][]float32
		for _, p := range m.Params() {
			out = append(out, floats(p.Grad))
		}
		return out
	}
	want := grads(1)
	for range 3 {
		require.Equal(t, want, grads(4))
	}
}

// TestShares: the mean over equal shares of a batch of their mean gradients is the
// mean gradient of the batch.
func TestShares(t *testing.T) {
	sizes := []int{20, 16, 10}
	const batch, ranks = 24, 4
	whole, labels := filled(t, sizes, batch)
	require.NoError(t, whole.Forward())
	_, _, err := whole.Loss(labels)
	require.NoError(t, err)
	require.NoError(t, whole.Backward(nil))
	sum := make([][]float64, len(whole.Params()))
	for r := range ranks {
		part, err := New(sizes, batch/ranks, 3)
		require.NoError(t, err)
		share := make([]uint8, batch/ranks)
		for i, p := range part.Params() {
			copy(floats(p.Value), floats(whole.Params()[i].Value))
		}
		for k := range share {
			s := r + k*ranks
			copy(part.Input()[k*sizes[0]:(k+1)*sizes[0]], whole.Input()[s*sizes[0]:(s+1)*sizes[0]])
			share[k] = labels[s]
		}
		require.NoError(t, part.Forward())
		_, _, err = part.Loss(share)
		require.NoError(t, err)
		require.NoError(t, part.Backward(nil))
		for i, p := range part.Params() {
			if sum[i] == nil {
				sum[i] = make([]float64, p.Count())
			}
			for j, g := range floats(p.Grad) {
				sum[i][j] += float64(g) / ranks
			}
		}
	}
	for i, p := range whole.Params() {
		for j, g := range floats(p.Grad) {
			require.InDelta(t, sum[i][j], float64(g), 1e-7, "%s[%d]", p.Name, j)
		}
	}
}

func TestRefusals(t *testing.T) {
	for _, tc := range []struct {
		sizes []int
		batch int
		want  string
	}{
		{[]int{4}, 1, "model: 1 layer widths: need at least inputs and classes"},
		{[]int{4, 0, 2}, 1, "model: layer width 0: must be at least 1"},
		{[]int{4, 2}, 0, "model: batch 0: must be at least 1"},
	} {
		_, err := New(tc.sizes, tc.batch, 0)
		require.EqualError(t, err, tc.want)
	}
	m, labels := filled(t, []int{4, 2}, 3)
	require.EqualError(t, m.Backward(nil), "model: Backward needs a Forward and a Loss before it")
	require.NoError(t, m.Forward())
	_, _, err := m.Loss(labels[:2])
	require.EqualError(t, err, "model: 2 labels for a batch of 3")
	labels[1] = 2
	_, _, err = m.Loss(labels)
	require.EqualError(t, err, "model: sample 1 has label 2: there are 2 classes")
	require.Error(t, m.Backward(nil), "after a refused Loss")
}

func TestPredict(t *testing.T) {
	m, labels := filled(t, []int{6, 5, 4}, 11)
	require.NoError(t, m.Forward())
	guess := make([]uint8, 11)
	m.Predict(guess)
	same := 0
	for i := range labels {
		row := m.Logits()[4*i : 4*i+4]
		for _, v := range row {
			require.GreaterOrEqual(t, row[guess[i]], v)
		}
		if guess[i] == labels[i] {
			same++
		}
	}
	_, correct, err := m.Loss(labels)
	require.NoError(t, err)
	require.Equal(t, same, correct)
}

// Products in pieces give the same bits as gonum's own.
func TestThreadsGiveTheSameBits(t *testing.T) {
	run := func() []float32 {
		m, err := New([]int{130, 257, 200, 10}, 70, 3)
		require.NoError(t, err)
		for i := range m.Input() {
			m.Input()[i] = float32(i%17)/8 - 1
		}
		labels := make([]uint8, m.Batch())
		for i := range labels {
			labels[i] = uint8(i % 10)
		}
		require.NoError(t, m.Forward())
		_, _, err = m.Loss(labels)
		require.NoError(t, err)
		require.NoError(t, m.Backward(nil))
		var all []float32
		for _, p := range m.Params() {
			all = append(all, p.Grad.Float32s()...)
		}
		return all
	}
	want := run()
	for _, n := range []int{1, 3} {
		restore := Threads(n)
		got := run()
		restore()
		require.Equal(t, want, got, "%d threads", n)
	}
	require.Equal(t, want, run())
}
