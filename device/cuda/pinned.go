package cuda

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
)

// Flags of cuMemHostAlloc and cuMemHostRegister, which share their numbers.
const (
	hostPortable  = 1 // pinned for all contexts
	hostDeviceMap = 2 // has a device address
)

// Pinned is memory of the host that GPUs can reach and copy engines move at full
// speed. Its device address holds on every GPU of the process.
type Pinned struct {
	dev    *Device
	host   uintptr
	device uintptr
	bytes  int
	undo   proc

	once sync.Once
	err  error
}

var _ device.Memory = (*Pinned)(nil)

// AllocPinned returns zeroed pinned memory outside the Go heap, aligned to a page.
func (d *Device) AllocPinned(bytes int) (*Pinned, error) {
	if err := d.claim(bytes); err != nil {
		return nil, err
	}
	p, err := d.pinned(bytes)
	if err != nil {
		d.letGo("memory")
		return nil, d.wrap(fmt.Errorf("%d bytes of pinned memory: %w", bytes, err))
	}
	clear(p.Host())
	return p, nil
}

// pinned makes memory that the device does not count.
func (d *Device) pinned(bytes int) (*Pinned, error) {
	p := &Pinned{dev: d, bytes: bytes, undo: cuMemFreeHost}
	return p, d.drv.within(d.ctx, func() error {
		return d.drv.relaxed(func() error {
			if err := d.drv.do(cuMemHostAlloc, uintptr(unsafe.Pointer(&p.host)), uintptr(bytes), hostPortable|hostDeviceMap); err != nil {
				return err
			}
			return p.locate()
		})
	})
}

// RegisterHost pins memory of the host that somebody else made, such as a segment
// shared between processes, and keeps until it is unregistered by Free. It must
// lie outside the Go heap: pinned pages do not survive Go's collector returning
// them to the system.
func (d *Device) RegisterHost(addr uintptr, bytes int) (*Pinned, error) {
	if addr == 0 {
		return nil, d.wrap(fmt.Errorf("%w: host memory at address 0", goccl.ErrInvalid))
	}
	if err := d.claim(bytes); err != nil {
		return nil, err
	}
	p := &Pinned{dev: d, host: addr, bytes: bytes, undo: cuMemHostUnregister}
	err := d.setup(func() error {
		if err := d.drv.do(cuMemHostRegister, addr, uintptr(bytes), hostPortable|hostDeviceMap); err != nil {
			return err
		}
		return p.locate()
	})
	if err != nil {
		d.letGo("memory")
		return nil, fmt.Errorf("pinning %d bytes at %#x: %w", bytes, addr, err)
	}
	return p, nil
}

// locate asks for the device address, and takes the memory back when there is
// none.
func (p *Pinned) locate() error {
	err := p.dev.drv.do(cuMemHostGetDevicePointer, uintptr(unsafe.Pointer(&p.device)), p.host, 0)
	if err != nil {
		_ = p.dev.drv.do(p.undo, p.host) // the first error says more
	}
	return err
}

// Addr returns the address on the host.
func (p *Pinned) Addr() uintptr { return p.host }

// DeviceAddr returns the address for kernels and stream operations.
func (p *Pinned) DeviceAddr() uintptr { return p.device }

// Bytes returns the length.
func (p *Pinned) Bytes() int { return p.bytes }

// Host returns the memory as a slice, which is valid until Free. What a GPU
// writes while it is read needs the order of an event, or words read through
// sync/atomic.
func (p *Pinned) Host() []byte {
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&p.host)), p.bytes)
}

// Free gives the memory back, or unpins it. The driver waits for the devices.
func (p *Pinned) Free() error {
	p.once.Do(func() {
		p.err = p.dev.wrap(p.release())
		p.dev.letGo("memory")
	})
	return p.err
}

func (p *Pinned) release() error { return p.dev.calls(p.undo, p.host)() }
