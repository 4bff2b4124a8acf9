// Package host is the CPU as a device: memory of the process, and streams that
// are goroutines. Programs whose buffers lie in host memory need no device at all;
// this one serves code that is written for streams, and tests of it.
package host

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
)

func init() {
	device.Register(device.Host, func(index int) (device.Device, error) {
		if index != 0 {
			return nil, fmt.Errorf("%w: there is one host, not an index %d", goccl.ErrInvalid, index)
		}
		return Open(), nil
	})
}

// alignment is what device.Device promises of memory.
const alignment = 256

// Device is the CPU of this machine.
type Device struct {
	mu      sync.Mutex
	closed  bool
	memory  int // allocations left
	streams int // streams not closed
}

var _ device.Device = (*Device)(nil)

// Open returns a device of its own.
func Open() *Device { return &Device{} }

// ID returns the host.
func (d *Device) ID() device.ID { return device.ID{} }

// Caps returns none: what processes share lies in internal/shmem.
func (d *Device) Caps() device.Caps { return device.Caps{} }

// Alloc returns zeroed memory of the Go heap, which lives as long as the Memory is
// reachable and not freed.
func (d *Device) Alloc(bytes int) (device.Memory, error) {
	if bytes <= 0 {
		return nil, fmt.Errorf("host: %w: memory of %d bytes", goccl.ErrInvalid, bytes)
	}
	if err := d.hold(&d.memory); err != nil {
		return nil, err
	}
	b := make([]byte, bytes+alignment)
	skip := -uintptr(unsafe.Pointer(&b[0])) & (alignment - 1)
	return &memory{dev: d, span: b[skip : skip+uintptr(bytes)]}, nil
}

// NewStream returns a stream. Priorities make no difference.
func (d *Device) NewStream(int) (device.Stream, error) {
	if err := d.hold(&d.streams); err != nil {
		return nil, err
	}
	return newStream(d), nil
}

// Close ends the device. It is refused while memory or streams are left.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.memory+d.streams > 0 {
		return fmt.Errorf("host: %w: closed while in use: %d allocations and %d streams are left", goccl.ErrInvalid, d.memory, d.streams)
	}
	d.closed = true
	return nil
}

func (d *Device) hold(n *int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return fmt.Errorf("host: %w", goccl.ErrClosed)
	}
	*n++
	return nil
}

func (d *Device) letGo(n *int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	*n--
}

type memory struct {
	dev  *Device
	span []byte
	once sync.Once
}

func (m *memory) Addr() uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(m.span))) }

func (m *memory) Bytes() int { return len(m.span) }

// Free lets the collector have the memory as soon as nobody else refers to it.
func (m *memory) Free() error {
	m.once.Do(func() { m.dev.letGo(&m.dev.memory) })
	return nil
}
