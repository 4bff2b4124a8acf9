package model

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gorgonia.org/tensor"
)

// MLP is a multilayer perceptron with a smooth ReLU between its layers and a softmax
// cross-entropy loss, for one fixed batch size. It is not safe for concurrent
// use.
type MLP struct {
	batch  int
	input  *tensor.Dense
	layers []layer
	params []Param
	ready  bool // Loss has left the gradient of the logits in the last layer
}

// layer is out = in·W + b and, but for the last layer, the activation. All tensors are
// made once.
type layer struct {
	w, b    int           // indices of its parameters
	in      *tensor.Dense // batch × fan-in: the layer before's out, or the input
	inT     *tensor.Dense // in, seen transposed
	out     *tensor.Dense // batch × fan-out
	dout    *tensor.Dense // gradient of out
	weightT *tensor.Dense // fan-out × fan-in: a transposed copy of the weight
	last    bool
}

// New makes a perceptron of the given layer widths, sizes[0] inputs to
// sizes[len-1] classes, that works on batch samples at a time. The weights are
// drawn from seed alone (He initialisation: normal with variance 2/fan-in; He et
// al. 2015; then centred per unit), the biases are zero.
func New(sizes []int, batch int, seed uint64) (*MLP, error) {
	if len(sizes) < 2 {
		return nil, fmt.Errorf("model: %d layer widths: need at least inputs and classes", len(sizes))
	}
	for _, n := range sizes {
		if n < 1 {
			return nil, fmt.Errorf("model: layer width %d: must be at least 1", n)
		}
	}
	if batch < 1 {
		return nil, fmt.Errorf("model: batch %d: must be at least 1", batch)
	}
	m := &MLP{batch: batch, input: zeros(batch, sizes[0])}
	rng := rand.New(rand.NewPCG(seed, 0x6d6c70)) // "mlp": its own stream of the seed
	in := m.input
	for i, out := range sizes[1:] {
		l := layer{w: 2 * i, b: 2*i + 1, in: in, last: i == len(sizes)-2}
		fanIn := sizes[i]
		l.out, l.dout = zeros(batch, out), zeros(batch, out)
		l.weightT = zeros(out, fanIn)
		l.inT = tensor.New(tensor.WithShape(batch, fanIn), tensor.WithBacking(floats(in)))
		if err := l.inT.T(); err != nil {
			return nil, fmt.Errorf("model: layer %d: %w", i+1, err)
		}
		w := Param{Name: fmt.Sprintf("fc%d.weight", i+1), Value: zeros(fanIn, out), Grad: zeros(fanIn, out)}
		b := Param{Name: fmt.Sprintf("fc%d.bias", i+1), Value: zeros(out), Grad: zeros(out)}
		initialise(floats(w.Value), fanIn, out, rng)
		m.params = append(m.params, w, b)
		m.layers = append(m.layers, l)
		in = l.out
	}
	return m, nil
}

// initialise draws the weights w, fanIn × out. The weights into each unit are shifted
// to a mean of zero: inputs and activations are never negative, and their common
// part, passed on, would only make the loss steeper than the learning rate allows.
func initialise(w []float32, fanIn, out int, rng *rand.Rand) {
	scale := math.Sqrt(2 / float64(fanIn))
	for j := range w {
		w[j] = float32(scale * rng.NormFloat64())
	}
	for unit := range out {
		var sum float32
		for j := unit; j < len(w); j += out {
			sum += w[j]
		}
		mean := sum / float32(fanIn)
		for j := unit; j < len(w); j += out {
			w[j] -= mean
		}
	}
}

func zeros(shape ...int) *tensor.Dense {
	return tensor.New(tensor.Of(tensor.Float32), tensor.WithShape(shape...))
}

// Batch is the number of samples the model works on at a time.
func (m *MLP) Batch() int { return m.batch }

// Input is the batch × inputs row-major memory that Forward reads. Fill it
// before each Forward.
func (m *MLP) Input() []float32 { return floats(m.input) }

// Classes is the number of outputs.
func (m *MLP) Classes() int { return m.layers[len(m.layers)-1].out.Shape()[1] }

// Logits is the batch × classes row-major result of the last Forward, valid
// until the next one or until Loss.
func (m *MLP) Logits() []float32 { return floats(m.layers[len(m.layers)-1].out) }
