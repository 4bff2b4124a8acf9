package cuda

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
)

// Memory is a span of device addresses that this process can use: allocated,
// mapped, or opened from another process.
type Memory struct {
	dev   *Device
	addr  uintptr
	bytes int
	free  func() error

	once sync.Once
	err  error
}

var _ device.Memory = (*Memory)(nil)

// Addr returns the device address. It is no address of the host.
func (m *Memory) Addr() uintptr { return m.addr }

// Bytes returns the length.
func (m *Memory) Bytes() int { return m.bytes }

// Device returns the device on which the memory was made or opened.
func (m *Memory) Device() *Device { return m.dev }

// Free gives the memory back. For memory of Alloc the driver waits for the whole
// device.
func (m *Memory) Free() error {
	m.once.Do(func() {
		m.err = m.dev.wrap(m.free())
		m.dev.letGo("memory")
	})
	return m.err
}

// claim checks a size and counts the memory to be.
func (d *Device) claim(bytes int) error {
	if bytes <= 0 {
		return d.wrap(fmt.Errorf("%w: memory of %d bytes", goccl.ErrInvalid, bytes))
	}
	return d.hold("memory")
}

// Alloc returns zeroed memory, aligned to 512 bytes, that other processes can
// open with an IPCHandle and that this device's peers reach once EnablePeer was
// called. It waits until the memory is zero, and gives up when a kernel holds the
// device for a minute.
func (d *Device) Alloc(bytes int) (device.Memory, error) {
	m, err := d.AllocMemory(bytes)
	if err != nil {
		return nil, err
	}
	return m, nil
}

// AllocMemory is Alloc with the type of this package.
func (d *Device) AllocMemory(bytes int) (*Memory, error) {
	if err := d.claim(bytes); err != nil {
		return nil, err
	}
	m := &Memory{dev: d, bytes: bytes}
	err := d.setup(func() error { return d.drv.do(cuMemAlloc, uintptr(unsafe.Pointer(&m.addr)), uintptr(bytes)) })
	if err != nil {
		d.letGo("memory")
		return nil, fmt.Errorf("%d bytes of memory: %w", bytes, err)
	}
	m.free = d.calls(cuMemFree, m.addr)
	err = d.zero(m.addr, bytes)
	switch {
	case errors.Is(err, goccl.ErrTimeout):
		d.letGo("memory") // it stays allocated: freeing it would wait for the device, too
		return nil, err
	case err != nil:
		_ = m.Free() // the first error says more
		return nil, err
	}
	return m, nil
}

// calls returns a function that calls p with one address in the device's context.
func (d *Device) calls(p proc, addr uintptr) func() error {
	return func() error {
		return d.drv.within(d.ctx, func() error {
			return d.drv.relaxed(func() error { return d.drv.do(p, addr) })
		})
	}
}
