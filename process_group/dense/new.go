package dense

import (
	"fmt"
	"math"
	"runtime"

	"gorgonia.org/tensor"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	processgroup "github.com/goccl/goccl/process_group"
)

// New returns a tensor of zeros in memory where the group's collectives are
// fastest, a window shared by the ranks of this machine if there is one; without
// dimensions it is a scalar. It is collective and blocks until all ranks have
// called it. The memory is the group's: the tensor must not be touched after the
// group is closed.
func New(g *processgroup.Group, d goccl.DType, shape ...int) (*tensor.Dense, error) {
	if _, err := typeOf(d); err != nil {
		return nil, err
	}
	n, err := elements(shape)
	if err != nil {
		return nil, err
	}
	b, err := g.NewBuffer(n, d)
	if err != nil {
		return nil, err
	}
	return Tensor(b, shape...)
}

// Tensor returns a tensor over the memory of b, without a copy: a gradient's view
// into its bucket, for example. The shape must have as many elements as b. What b
// lives in must outlive the tensor, unless it is ordinary Go memory.
func Tensor(b device.Buffer, shape ...int) (*tensor.Dense, error) {
	typ, err := typeOf(b.DType)
	if err != nil {
		return nil, err
	}
	n, err := elements(shape)
	switch {
	case err != nil:
		return nil, err
	case n != b.Count:
		return nil, fmt.Errorf("%w: shape %v has %d elements, the buffer %d", goccl.ErrInvalid, shape, n, b.Count)
	case b.Device.Kind != device.Host:
		return nil, fmt.Errorf("%w: a tensor over memory of %v; it needs an engine of its own", goccl.ErrUnsupported, b.Device)
	case n == 0:
		return tensor.New(tensor.Of(typ), tensor.WithShape(shape...)), nil
	}
	t := tensor.New(tensor.Of(typ), tensor.WithShape(shape...), tensor.FromMemory(b.Addr, uintptr(b.Bytes())))
	runtime.KeepAlive(b.Owner) // from here on the tensor holds the memory
	return t, nil
}

// elements is the product of the dimensions.
func elements(shape []int) (int, error) {
	n := 1
	for _, dim := range shape {
		if dim < 0 || dim > 0 && n > math.MaxInt/8/dim {
			return 0, fmt.Errorf("%w: shape %v", goccl.ErrInvalid, shape)
		}
		n *= dim
	}
	return n, nil
}
