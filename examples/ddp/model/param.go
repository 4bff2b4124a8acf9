package model

import (
	"fmt"

	"gorgonia.org/tensor"
)

// Param is one parameter of a model: its value and the gradient of the mean
// loss with respect to it, both float32 and of one shape.
type Param struct {
	Name  string
	Value *tensor.Dense
	Grad  *tensor.Dense
}

// Count is the number of elements.
func (p Param) Count() int { return p.Value.Size() }

// Bytes is the size of the value in bytes, and of the gradient.
func (p Param) Bytes() int { return p.Count() * 4 }

// Params returns the model's parameters in forward order: fc1.weight, fc1.bias,
// fc2.weight, ... Index i is the one that Backward reports and SetGrad takes.
// The slice is the model's own: read it, do not change it.
func (m *MLP) Params() []Param { return m.params }

// SetGrad makes Backward write the gradient of parameter i into g from the next
// call on. g must be a contiguous row-major float32 tensor of the parameter's
// shape, and stays owned by the caller.
func (m *MLP) SetGrad(i int, g *tensor.Dense) error {
	if i < 0 || i >= len(m.params) {
		return fmt.Errorf("model: no parameter %d: there are %d", i, len(m.params))
	}
	p := &m.params[i]
	if !g.Shape().Eq(p.Value.Shape()) {
		return fmt.Errorf("model: gradient of %s has shape %v, want %v", p.Name, g.Shape(), p.Value.Shape())
	}
	if g.Dtype() != tensor.Float32 {
		return fmt.Errorf("model: gradient of %s is %v, want float32", p.Name, g.Dtype())
	}
	if g.RequiresIterator() || !g.DataOrder().IsRowMajor() || g.DataSize() != g.Size() {
		return fmt.Errorf("model: gradient of %s must be contiguous and row-major", p.Name)
	}
	p.Grad = g
	return nil
}

// floats is the elements of t, which share t's memory.
func floats(t *tensor.Dense) []float32 { return t.Float32s() }
