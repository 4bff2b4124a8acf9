package cuda

import (
	"fmt"
	"os"
	"sync"
	"unsafe"

	"github.com/goccl/goccl"
)

// Physical is memory of a GPU without an address. It is mapped to have one, in
// this process and, by a file descriptor, in others. The memory itself is freed
// when it has been released and unmapped everywhere.
type Physical struct {
	dev    *Device
	handle uint64
	bytes  int

	once sync.Once
	err  error
}

// NewPhysical makes physical memory of at least the given bytes; Bytes says how
// much it became, in whole steps of the driver, 2 MiB as a rule. Its contents are
// undefined. It can be given to other processes.
func (d *Device) NewPhysical(bytes int) (*Physical, error) {
	if !d.info.vmm {
		return nil, d.wrap(fmt.Errorf("%w: %s cannot map memory through file descriptors", goccl.ErrUnsupported, d.info.Name))
	}
	if err := d.claim(bytes); err != nil {
		return nil, err
	}
	p := &Physical{dev: d}
	prop := d.prop()
	err := d.drv.relaxed(func() error {
		var step uint64
		if err := d.drv.do(cuMemGetAllocationGranularity, uintptr(unsafe.Pointer(&step)), uintptr(unsafe.Pointer(prop)), granularityMinimum); err != nil {
			return err
		}
		p.bytes = (bytes + int(step) - 1) / int(step) * int(step)
		return d.drv.do(cuMemCreate, uintptr(unsafe.Pointer(&p.handle)), uintptr(p.bytes), uintptr(unsafe.Pointer(prop)), 0)
	})
	if err != nil {
		d.letGo("memory")
		return nil, d.wrap(fmt.Errorf("%d bytes of physical memory: %w", bytes, err))
	}
	return p, nil
}

// prop describes memory of this device that a file descriptor can carry.
func (d *Device) prop() *allocationProp {
	p := &allocationProp{kind: allocationPinned, handleTypes: handleFD, location: memLocation{locationDevice, d.info.ordinal}}
	if d.info.rdmaVMM {
		p.rdma = 1 // network cards may reach it
	}
	return p
}

// ImportPhysical returns the physical memory that another process has exported to
// f, which may be closed afterwards. bytes is Physical.Bytes of the exporter. d is
// the device that will use it, which need not be the one that it lies on.
func (d *Device) ImportPhysical(f *os.File, bytes int) (*Physical, error) {
	if err := d.claim(bytes); err != nil {
		return nil, err
	}
	p := &Physical{dev: d, bytes: bytes}
	err := d.drv.relaxed(func() error {
		return d.drv.do(cuMemImportFromShareableHandle, uintptr(unsafe.Pointer(&p.handle)), f.Fd(), handleFD)
	})
	if err != nil {
		d.letGo("memory")
		return nil, d.wrap(fmt.Errorf("importing %d bytes of another process: %w", bytes, err))
	}
	return p, nil
}

// Bytes returns the length.
func (p *Physical) Bytes() int { return p.bytes }

// Export returns a file descriptor that carries the memory to another process,
// over a unix socket. It keeps the memory until it is closed everywhere.
func (p *Physical) Export() (*os.File, error) {
	fd := int32(-1)
	err := p.dev.drv.relaxed(func() error {
		return p.dev.drv.do(cuMemExportToShareableHandle, uintptr(unsafe.Pointer(&fd)), uintptr(p.handle), handleFD, 0)
	})
	if err != nil {
		return nil, p.dev.wrap(err)
	}
	closeOnExec(int(fd))
	return os.NewFile(uintptr(fd), "cuda-memory"), nil
}

// Map gives the memory an address, at which the device of p and the peers, which
// it must be able to reach, read and write. Free of the result unmaps it.
func (p *Physical) Map(peers ...*Device) (*Memory, error) {
	d := p.dev
	if err := d.hold("memory"); err != nil {
		return nil, err
	}
	m := &Memory{dev: d, bytes: p.bytes}
	m.free = func() error { return d.unmap(m.addr, m.bytes) }
	if err := d.drv.relaxed(func() error { return p.place(m, peers) }); err != nil {
		d.letGo("memory")
		return nil, d.wrap(fmt.Errorf("mapping %d bytes: %w", p.bytes, err))
	}
	return m, nil
}

// place reserves addresses, maps and opens them, or leaves nothing behind.
func (p *Physical) place(m *Memory, peers []*Device) error {
	drv, bytes := p.dev.drv, uintptr(p.bytes)
	if err := drv.do(cuMemAddressReserve, uintptr(unsafe.Pointer(&m.addr)), bytes, 0, 0, 0); err != nil {
		return err
	}
	if err := drv.do(cuMemMap, m.addr, bytes, 0, uintptr(p.handle), 0); err != nil {
		_ = drv.do(cuMemAddressFree, m.addr, bytes) // the first error says more
		return err
	}
	desc := reachedBy(append([]*Device{p.dev}, peers...))
	if err := drv.do(cuMemSetAccess, m.addr, bytes, uintptr(unsafe.Pointer(&desc[0])), uintptr(len(desc))); err != nil {
		_ = p.dev.unmap(m.addr, p.bytes) // the first error says more
		return err
	}
	return nil
}

// reachedBy describes devices that may read and write.
func reachedBy(devs []*Device) []accessDesc {
	desc := make([]accessDesc, len(devs))
	for i, d := range devs {
		desc[i] = accessDesc{memLocation{locationDevice, d.info.ordinal}, accessReadWrite}
	}
	return desc
}

func (d *Device) unmap(addr uintptr, bytes int) error {
	return d.drv.relaxed(func() error {
		err := d.drv.do(cuMemUnmap, addr, uintptr(bytes))
		if e := d.drv.do(cuMemAddressFree, addr, uintptr(bytes)); err == nil {
			err = e
		}
		return err
	})
}

// Release gives up this process's hold on the memory; mappings of it stay. It is
// idempotent.
func (p *Physical) Release() error {
	p.once.Do(func() {
		p.err = p.dev.wrap(p.dev.drv.relaxed(func() error { return p.dev.drv.do(cuMemRelease, uintptr(p.handle)) }))
		p.dev.letGo("memory")
	})
	return p.err
}
