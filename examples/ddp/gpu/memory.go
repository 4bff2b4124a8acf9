package gpu

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/device/cuda"
)

// memory is everything that an Engine holds on the device and pinned on the host.
type memory struct {
	dev  *cuda.Device
	held []interface{ Free() error }
	err  error // the first one: no call counts after it
}

// floats returns n zeroed elements.
func (m *memory) floats(n int) device.Buffer {
	return device.FromPointer(m.bytes(4*n), n, goccl.F32, m.dev.ID(), nil)
}

// bytes returns zeroed memory of the device.
func (m *memory) bytes(n int) uintptr {
	if m.err != nil {
		return 0
	}
	span, err := m.dev.AllocMemory(n)
	if err != nil {
		m.err = err
		return 0
	}
	m.held = append(m.held, span)
	return span.Addr()
}

// pinned returns zeroed memory of the host that copies go to and from directly.
func (m *memory) pinned(n int) *cuda.Pinned {
	if m.err != nil {
		return nil
	}
	span, err := m.dev.AllocPinned(n)
	if err != nil {
		m.err = err
		return nil
	}
	m.held = append(m.held, span)
	return span
}

// free gives all back. Nothing uses it any more.
func (m *memory) free() error {
	var errs []error
	for _, span := range m.held {
		errs = append(errs, span.Free())
	}
	m.held = nil
	return errors.Join(errs...)
}

// bytesOf is v as it lies in memory of a GPU.
func bytesOf(v []float32) []byte {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.NativeEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// Floats are the elements of b, as it lies in memory of a GPU.
func Floats(b []byte) []float32 {
	v := make([]float32, len(b)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.NativeEndian.Uint32(b[4*i:]))
	}
	return v
}
