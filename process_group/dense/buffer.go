package dense

import (
	"fmt"
	"unsafe"

	"gorgonia.org/tensor"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
)

// The reasons for which a tensor is refused. Both are goccl.ErrUnsupported.
var (
	ErrMasked  = fmt.Errorf("%w: masked tensor; a mask does not travel, so send the data and the mask as tensors of their own", goccl.ErrUnsupported)
	ErrStrided = fmt.Errorf("%w: tensor that is not contiguous in row-major order; use dense.Through, or Materialize it", goccl.ErrUnsupported)
)

// Buffer returns the memory of t, without a copy: what a collective reads and
// writes. It refuses masked tensors (ErrMasked), views with gaps and other orders
// than row-major (ErrStrided), element types it does not know, and memory of a
// device, for which there is BufferOn. It allocates nothing.
func Buffer(t *tensor.Dense) (device.Buffer, error) {
	if err := checkHost(t); err != nil {
		return device.Buffer{}, err
	}
	return contiguous(t, device.ID{})
}

// BufferOn is Buffer for a tensor whose memory lies on device id and cannot be
// touched by the CPU. t itself is kept until the operation ends.
func BufferOn(t *tensor.Dense, id device.ID) (device.Buffer, error) {
	if t == nil {
		return device.Buffer{}, fmt.Errorf("%w: nil tensor", goccl.ErrInvalid)
	}
	b, err := contiguous(t, id)
	b.Owner = t
	return b, err
}

func checkHost(t *tensor.Dense) error {
	switch {
	case t == nil:
		return fmt.Errorf("%w: nil tensor", goccl.ErrInvalid)
	case !t.IsNativelyAccessible():
		return fmt.Errorf("%w: the tensor lies on a device; dense.BufferOn takes it with the device's id", goccl.ErrInvalid)
	}
	return nil
}

func contiguous(t *tensor.Dense, id device.ID) (device.Buffer, error) {
	d, n, err := extent(t)
	if err != nil {
		return device.Buffer{}, err
	}
	b := device.Buffer{Count: n, DType: d, Device: id}
	if n == 0 {
		return b, nil // such a tensor has no address to ask for
	}
	if !rowMajor(t.Shape(), t.Strides()) {
		return device.Buffer{}, fmt.Errorf("%w (shape %v, strides %v)", ErrStrided, t.Shape(), t.Strides())
	}
	if have := t.MemSize(); have < uintptr(b.Bytes()) {
		return device.Buffer{}, fmt.Errorf("%w: the tensor has %d bytes for %d elements of %v", goccl.ErrInvalid, have, n, d)
	}
	b.Addr = t.Uintptr()
	b.Owner = owner(t, b.Addr)
	return b, nil
}

// owner is what keeps the memory of t alive: the memory itself, since the header
// may go back to gorgonia's pool; but the header when somebody else manages the
// memory and may have tied it to the header.
func owner(t *tensor.Dense, addr uintptr) any {
	if t.IsManuallyManaged() {
		return t
	}
	return *(*unsafe.Pointer)(unsafe.Pointer(&addr))
}

// extent returns the element type and the number of elements, and refuses masks.
func extent(t *tensor.Dense) (goccl.DType, int, error) {
	d, err := dtypeOf(t)
	if err != nil {
		return 0, 0, err
	}
	if len(t.Mask()) > 0 { // IsMasked is also true of a tensor of size zero
		return 0, 0, ErrMasked
	}
	n := 1
	for _, dim := range t.Shape() {
		if dim < 0 {
			return 0, 0, fmt.Errorf("%w: tensor of shape %v", goccl.ErrInvalid, t.Shape())
		}
		n *= dim
	}
	return d, n, nil
}

// rowMajor reports whether the strides are those of a row-major tensor without
// gaps. The flags of a tensor do not say so: they stay set when it is transposed.
// The stride of a dimension of one element means nothing.
func rowMajor(shape tensor.Shape, strides []int) bool {
	if len(shape) != len(strides) {
		// Scalars have no strides; a vector may have one stride for a shape (n, 1).
		return product(shape) == 1 || len(strides) == 1 && strides[0] == 1 && max(shape[0], shape[len(shape)-1]) == product(shape)
	}
	want := 1
	for i := len(shape) - 1; i >= 0; i-- {
		if shape[i] != 1 && strides[i] != want {
			return false
		}
		want *= shape[i]
	}
	return true
}

func product(shape tensor.Shape) int {
	n := 1
	for _, dim := range shape {
		n *= dim
	}
	return n
}
