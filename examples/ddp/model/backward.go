package model

import (
	"errors"
	"fmt"

	"gorgonia.org/tensor"
)

// Backward computes the gradients of the mean loss of the last Loss, from the
// last layer to the first, in place in Param.Grad. It calls ready(i) in this
// goroutine as soon as parameter i's gradient is final, each i once, from the last
// index to 0. ready may be nil.
func (m *MLP) Backward(ready func(i int)) error {
	if !m.ready {
		return errors.New("model: Backward needs a Forward and a Loss before it")
	}
	m.ready = false
	if ready == nil {
		ready = func(int) {}
	}
	for i := len(m.layers) - 1; i >= 0; i-- {
		if err := m.backwardLayer(i, ready); err != nil {
			return fmt.Errorf("model: backward of layer %d: %w", i+1, err)
		}
	}
	return nil
}

func (m *MLP) backwardLayer(i int, ready func(i int)) error {
	l := &m.layers[i]
	w, b := m.params[l.w], m.params[l.b]
	sumRows(floats(b.Grad), floats(l.dout))
	ready(l.b)
	if _, err := tensor.MatMul(l.inT, l.dout, tensor.WithReuse(w.Grad)); err != nil {
		return err
	}
	ready(l.w)
	if i == 0 {
		return nil // nobody asks for the gradient of the input
	}
	// A transposed copy costs a small part of the product and lets it skip the
	// zeros that the activation leaves in dout.
	shape := w.Value.Shape()
	transpose(floats(l.weightT), floats(w.Value), shape[0], shape[1])
	before := &m.layers[i-1]
	if _, err := tensor.MatMul(l.dout, l.weightT, tensor.WithReuse(before.dout)); err != nil {
		return err
	}
	throughActivation(floats(before.dout), floats(before.out))
	return nil
}

// sumRows sets sum to the sum of the rows of x.
func sumRows(sum, x []float32) {
	clear(sum)
	for ; len(x) >= len(sum) && len(sum) > 0; x = x[len(sum):] {
		for j, v := range x[:len(sum)] {
			sum[j] += v
		}
	}
}

// transpose sets dst, cols × rows, to the transpose of src, rows × cols. It
// goes in tiles so that the strided side stays in cache.
func transpose(dst, src []float32, rows, cols int) {
	const tile = 16
	for r0 := 0; r0 < rows; r0 += tile {
		for c0 := 0; c0 < cols; c0 += tile {
			for r := r0; r < min(r0+tile, rows); r++ {
				for c := c0; c < min(c0+tile, cols); c++ {
					dst[c*rows+r] = src[r*cols+c]
				}
			}
		}
	}
}
