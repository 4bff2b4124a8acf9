package dense

import (
	"fmt"

	"gorgonia.org/tensor"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/bucket"
)

// Params makes the parameters of a reducer whose gradients are these tensors, in
// this order. Set Value in them to have the parameters' values sent from one rank
// at the start. An error names the gradient that cannot be used; see Buffer.
func Params(names []string, grads []*tensor.Dense) ([]bucket.Param, error) {
	if len(names) != len(grads) {
		return nil, fmt.Errorf("%w: %d names for %d gradients", goccl.ErrInvalid, len(names), len(grads))
	}
	ps := make([]bucket.Param, len(grads))
	for i, g := range grads {
		b, err := Buffer(g)
		if err != nil {
			return nil, fmt.Errorf("gradient %q: %w", names[i], err)
		}
		ps[i] = bucket.Param{Name: names[i], Grad: b}
	}
	return ps, nil
}
