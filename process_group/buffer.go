package processgroup

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
)

// windows are the buffers that NewBuffer made and that are not freed.
type windows struct {
	mu   sync.Mutex
	free map[uintptr]func() error
	made []uintptr // in the order of NewBuffer, which is the same on all ranks
}

// NewBuffer returns memory for n elements, zeroed, where collectives are fastest:
// a window that the ranks of this machine map, if the backend has one. It is
// collective and blocks until all ranks have called it with the same arguments.
// The memory is the group's: FreeBuffer or Close gives it back, and it must not be
// touched after that.
func (c *core) NewBuffer(n int, d goccl.DType) (device.Buffer, error) {
	switch {
	case !d.Valid():
		return device.Buffer{}, fmt.Errorf("%w: no element type %v", goccl.ErrInvalid, d)
	case n < 0 || n > math.MaxInt/8-1:
		return device.Buffer{}, fmt.Errorf("%w: buffer of %d elements", goccl.ErrInvalid, n)
	}
	if cause := c.cause(); cause != nil {
		return device.Buffer{}, cause
	}
	a, ok := c.backend.(Allocator)
	if !ok || n == 0 {
		return onHeap(n, d), nil
	}
	// One at a time: the ranks would else disagree about which is which.
	c.windows.mu.Lock()
	defer c.windows.mu.Unlock()
	b, free, err := a.NewBuffer(n, d)
	if err != nil {
		return device.Buffer{}, c.fail(err, true)
	}
	if c.windows.free == nil {
		c.windows.free = make(map[uintptr]func() error)
	}
	c.windows.free[b.Addr] = free
	c.windows.made = append(c.windows.made, b.Addr)
	return b, nil
}

// FreeBuffer gives back a buffer of NewBuffer, whole or a slice that begins where
// it does. It is collective. No operation on it may be under way.
func (c *core) FreeBuffer(b device.Buffer) error {
	c.windows.mu.Lock()
	defer c.windows.mu.Unlock()
	free := c.windows.free[b.Addr]
	if free == nil {
		return nil // from the heap: the collector takes it
	}
	delete(c.windows.free, b.Addr)
	return free()
}

// freeAll gives back what is left, oldest first.
func (w *windows) freeAll() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var errs []error
	for _, addr := range w.made {
		if free := w.free[addr]; free != nil {
			delete(w.free, addr)
			errs = append(errs, free())
		}
	}
	w.made = nil
	return errors.Join(errs...)
}

// onHeap returns ordinary memory, aligned for every type.
func onHeap(n int, d goccl.DType) device.Buffer {
	b := device.SliceOf(make([]uint64, (n*d.Size()+7)/8))
	b.Count, b.DType = n, d
	return b
}
