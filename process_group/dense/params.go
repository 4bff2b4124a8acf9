package dense

import (
	"fmt"

	"gorgonia.org/tensor"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
)

// Params pairs names with the memory of gradients and makes a parameter of each
// by param, which also sets what else it has. For a reducer:
//
//	ps, err := dense.Params(names, grads, func(name string, grad device.Buffer) bucket.Param {
//		return bucket.Param{Name: name, Grad: grad}
//	})
//
// The type is the caller's because this package stands below package bucket. An
// error names the gradient that cannot be used; see Buffer.
func Params[P any](names []string, grads []*tensor.Dense, param func(name string, grad device.Buffer) P) ([]P, error) {
	if len(names) != len(grads) {
		return nil, fmt.Errorf("%w: %d names for %d gradients", goccl.ErrInvalid, len(names), len(grads))
	}
	ps := make([]P, len(grads))
	for i, g := range grads {
		b, err := Buffer(g)
		if err != nil {
			return nil, fmt.Errorf("gradient %q: %w", names[i], err)
		}
		ps[i] = param(names[i], b)
	}
	return ps, nil
}
