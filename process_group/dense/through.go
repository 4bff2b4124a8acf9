package dense

import (
	"context"
	"fmt"
	"unsafe"

	"gorgonia.org/tensor"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	processgroup "github.com/goccl/goccl/process_group"
)

// Through runs a collective on any tensor of known type, also a transposed or
// column-major one and a view with gaps, and waits for it:
//
//	err := dense.Through(ctx, t.T(), func(b device.Buffer) processgroup.Work { return g.AllReduce(b, goccl.Sum) })
//
// start gets the elements in row-major order: t's own memory where that is so, and
// else a temporary that is copied back when the operation has ended well. Memory
// between the elements of t is not touched. When ctx ends first, a temporary is
// given up and t stays as it was.
//
// A tensor that cannot be taken makes no call, so the other ranks learn of it only
// when this one reports the error, as dist.Run does.
func Through(ctx context.Context, t *tensor.Dense, start func(b device.Buffer) processgroup.Work) error {
	if err := checkHost(t); err != nil {
		return err
	}
	d, n, err := extent(t)
	if err != nil {
		return err
	}
	if n == 0 || rowMajor(t.Shape(), t.Strides()) {
		b, err := Buffer(t)
		if err != nil {
			return err
		}
		return start(b).Wait(ctx)
	}
	v, err := viewOf(t, d)
	if err != nil {
		return err
	}
	b := device.SliceOf(make([]uint64, (n*d.Size()+7)/8))
	b.Count, b.DType = n, d
	v.copy(b.Addr, true)
	if err := start(b).Wait(ctx); err != nil {
		return err
	}
	v.copy(b.Addr, false)
	return nil
}

// view is a tensor with any strides.
type view struct {
	t       *tensor.Dense
	base    uintptr
	size    int // of an element
	shape   []int
	strides []int // in elements
}

func viewOf(t *tensor.Dense, d goccl.DType) (*view, error) {
	v := &view{t: t, base: t.Uintptr(), size: d.Size(), shape: t.Shape(), strides: t.Strides()}
	if len(v.strides) == 1 && len(v.shape) == 2 { // a vector that is shaped as a matrix
		v.shape = []int{product(t.Shape())}
	}
	if len(v.shape) != len(v.strides) {
		return nil, fmt.Errorf("%w (shape %v, strides %v)", ErrStrided, t.Shape(), t.Strides())
	}
	last := 0
	for i, s := range v.strides {
		if s < 0 || s == 0 && v.shape[i] > 1 {
			return nil, fmt.Errorf("%w (strides %v)", ErrStrided, v.strides)
		}
		last += s * (v.shape[i] - 1)
	}
	if need := uintptr((last + 1) * v.size); need > t.MemSize() {
		return nil, fmt.Errorf("%w: shape %v with strides %v needs %d bytes, the tensor has %d", goccl.ErrInvalid, v.shape, v.strides, need, t.MemSize())
	}
	return v, nil
}

// copy moves the elements between the view and packed memory at addr.
func (v *view) copy(addr uintptr, pack bool) {
	switch v.size {
	case 1:
		each[uint8](v, addr, pack)
	case 2:
		each[uint16](v, addr, pack)
	case 4:
		each[uint32](v, addr, pack)
	case 8:
		each[uint64](v, addr, pack)
	}
}

// each walks the last dimension in a loop and the others as an odometer.
func each[T uint8 | uint16 | uint32 | uint64](v *view, addr uintptr, pack bool) {
	dims := len(v.shape)
	inner, step := v.shape[dims-1], v.strides[dims-1]
	index := make([]int, dims)
	for {
		at := 0
		for i := range dims - 1 {
			at += index[i] * v.strides[i]
		}
		for j := range inner {
			element := pointer[T](v.base + uintptr((at+j*step)*v.size))
			packed := pointer[T](addr)
			if pack {
				*packed = *element
			} else {
				*element = *packed
			}
			addr += uintptr(v.size)
		}
		i := dims - 2
		for ; i >= 0; i-- {
			if index[i]++; index[i] < v.shape[i] {
				break
			}
			index[i] = 0
		}
		if i < 0 {
			return
		}
	}
}

// pointer views addr, which lies in memory that the caller holds.
func pointer[T any](addr uintptr) *T { return (*T)(*(*unsafe.Pointer)(unsafe.Pointer(&addr))) }
