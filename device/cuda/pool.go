package cuda

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/goccl/goccl"
)

// poolKeep is the attribute of a pool for the bytes that it keeps.
const poolKeep = 4

// Pool is memory that is allocated and freed in the order of streams, without
// waiting for the device.
type Pool struct {
	dev    *Device
	handle uintptr

	once sync.Once
	err  error
}

// NewPool returns a pool on the device that keeps up to keep free bytes for
// itself when work is done.
func (d *Device) NewPool(keep int) (*Pool, error) {
	if !d.info.pools {
		return nil, d.wrap(fmt.Errorf("%w: %s has no memory pools", goccl.ErrUnsupported, d.info.Name))
	}
	if err := d.hold("pools"); err != nil {
		return nil, err
	}
	p := &Pool{dev: d}
	err := d.setup(func() error {
		props := &poolProps{kind: allocationPinned, location: memLocation{locationDevice, d.info.ordinal}}
		if err := d.drv.do(cuMemPoolCreate, uintptr(unsafe.Pointer(&p.handle)), uintptr(unsafe.Pointer(props))); err != nil {
			return err
		}
		threshold := uint64(keep)
		err := d.drv.do(cuMemPoolSetAttribute, p.handle, poolKeep, uintptr(unsafe.Pointer(&threshold)))
		if err != nil {
			_ = d.drv.do(cuMemPoolDestroy, p.handle) // the first error says more
		}
		return err
	})
	if err != nil {
		d.letGo("pools")
		return nil, err
	}
	return p, nil
}

// Alloc queues an allocation and returns its address at once. The memory is there
// for work queued later on this stream, and for other streams after an event. Its
// contents are undefined.
func (c Section) Alloc(p *Pool, bytes int) (uintptr, error) {
	if bytes <= 0 {
		return 0, c.s.dev.wrap(fmt.Errorf("%w: memory of %d bytes", goccl.ErrInvalid, bytes))
	}
	s := scratches.Get().(*scratch)
	err := c.fast(cuMemAllocFromPoolAsync, uintptr(unsafe.Pointer(&s.word)), uintptr(bytes), p.handle, c.s.handle)
	addr := uintptr(s.word)
	scratches.Put(s)
	if err != nil {
		return 0, err
	}
	return addr, nil
}

// Free queues giving back memory of Alloc, after the work queued so far.
func (c Section) Free(addr uintptr) error { return c.fast(cuMemFreeAsync, addr, c.s.handle) }

// Allow lets peers, which must be able to reach the device, use the pool's
// memory.
func (p *Pool) Allow(peers ...*Device) error {
	if len(peers) == 0 {
		return nil
	}
	desc := reachedBy(peers)
	return p.dev.setup(func() error {
		return p.dev.drv.do(cuMemPoolSetAccess, p.handle, uintptr(unsafe.Pointer(&desc[0])), uintptr(len(desc)))
	})
}

// Trim returns free memory to the device, all but keep bytes.
func (p *Pool) Trim(keep int) error {
	return p.dev.setup(func() error { return p.dev.drv.do(cuMemPoolTrimTo, p.handle, uintptr(keep)) })
}

// Close destroys the pool, whose memory has been freed. It is idempotent.
func (p *Pool) Close() error {
	p.once.Do(func() {
		p.err = p.dev.setup(func() error { return p.dev.drv.do(cuMemPoolDestroy, p.handle) })
		p.dev.letGo("pools")
	})
	return p.err
}
