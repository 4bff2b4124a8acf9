package cuda

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
)

func init() {
	device.Register(device.CUDA, func(index int) (device.Device, error) {
		drv, err := Load()
		if err != nil {
			return nil, err
		}
		d, err := drv.Open(index)
		if err != nil {
			return nil, err
		}
		return d, nil
	})
}

// Device is one GPU and one context on it. It is safe for concurrent use.
type Device struct {
	drv     *Driver
	info    Info
	ctx     uintptr
	primary bool    // the context is retained, not borrowed
	aux     *Stream // for zeroing, Write and Read
	staging *staging
	pool    eventPool

	mu     sync.Mutex
	closed bool
	live   map[string]int // what is left of each kind of thing
}

var _ device.Device = (*Device)(nil)

// Open retains the primary context of the GPU of that index, the one that CUDA's
// runtime library uses too, so that memory and streams of other libraries in this
// process go with it. Making the context takes about 0.1 s. A GPU can be opened
// several times.
func (d *Driver) Open(index int) (*Device, error) {
	info, err := d.describe(index)
	if err != nil {
		return nil, fmt.Errorf("cuda:%d: %w", index, err)
	}
	if !info.unified {
		return nil, fmt.Errorf("cuda:%d: %w: %s has no unified addressing", index, goccl.ErrUnsupported, info.Name)
	}
	var ctx uintptr
	if err := d.do(cuDevicePrimaryCtxRetain, uintptr(unsafe.Pointer(&ctx)), uintptr(info.ordinal)); err != nil {
		return nil, fmt.Errorf("cuda:%d: %w", index, err)
	}
	dev, err := d.newDevice(info, ctx, true)
	if err != nil {
		_ = d.do(cuDevicePrimaryCtxRelease, uintptr(info.ordinal)) // the first error says more
	}
	return dev, err
}

// WrapContext returns a device on a context that somebody else made and keeps
// until after Close. Its streams and memory belong to that context.
func (d *Driver) WrapContext(ctx uintptr) (*Device, error) {
	if ctx == 0 {
		return nil, fmt.Errorf("cuda: %w: the context is 0", goccl.ErrInvalid)
	}
	var ordinal int32
	err := d.within(ctx, func() error { return d.do(cuCtxGetDevice, uintptr(unsafe.Pointer(&ordinal))) })
	if err != nil {
		return nil, fmt.Errorf("cuda: context %#x: %w", ctx, err)
	}
	info, err := d.describe(int(ordinal)) // ordinals are handles: the driver numbers both alike
	if err != nil {
		return nil, fmt.Errorf("cuda:%d: %w", ordinal, err)
	}
	return d.newDevice(info, ctx, false)
}

func (d *Driver) newDevice(info Info, ctx uintptr, primary bool) (*Device, error) {
	dev := &Device{drv: d, info: info, ctx: ctx, primary: primary, staging: newStaging(), live: map[string]int{}}
	dev.pool.dev = dev
	aux, err := dev.newStream(0)
	if err != nil {
		return nil, dev.wrap(err)
	}
	dev.aux = aux
	return dev, nil
}

// ID returns the kind and the index among the GPUs that this process sees.
func (d *Device) ID() device.ID { return device.ID{Kind: device.CUDA, Index: d.info.Index} }

// Info describes the GPU.
func (d *Device) Info() Info { return d.info }

// Driver returns the driver that the device was opened with.
func (d *Device) Driver() *Driver { return d.drv }

// Context returns the handle of the context, for other libraries.
func (d *Device) Context() uintptr { return d.ctx }

// Caps says what can be done. Multicast is false: no multicast object is made
// here, whatever the hardware can do.
func (d *Device) Caps() device.Caps {
	return device.Caps{PeerMap: d.info.vmm, StreamMemOps: d.info.memOps, Graphs: true, ComputeCap: d.info.ComputeCap}
}

// MemoryInfo returns how many bytes of the GPU's memory are free, for all
// processes, and how many there are.
func (d *Device) MemoryInfo() (free, total int, err error) {
	var n [2]uint64
	err = d.setup(func() error {
		return d.drv.do(cuMemGetInfo, uintptr(unsafe.Pointer(&n[0])), uintptr(unsafe.Pointer(&n[1])))
	})
	return int(n[0]), int(n[1]), err
}

// hold counts a thing that must be gone before Close.
func (d *Device) hold(kind string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return d.wrap(goccl.ErrClosed)
	}
	d.live[kind]++
	return nil
}

func (d *Device) letGo(kind string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.live[kind]--; d.live[kind] == 0 {
		delete(d.live, kind)
	}
}

// Close releases the context and the events that were kept for reuse. It is
// refused while memory, streams, modules or graphs are left. The context itself
// ends when nobody in the process retains it any more.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	if len(d.live) > 0 {
		return d.wrap(fmt.Errorf("%w: closed while in use: %v are left", goccl.ErrInvalid, d.live))
	}
	d.closed = true
	err := d.pool.drain()
	if e := d.staging.free(); err == nil {
		err = e
	}
	if e := d.aux.destroy(); err == nil {
		err = e
	}
	if d.primary {
		if e := d.drv.do(cuDevicePrimaryCtxRelease, uintptr(d.info.ordinal)); err == nil {
			err = e
		}
	}
	return d.wrap(err)
}

// wrap says which device an error is about.
func (d *Device) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("cuda:%d: %w", d.info.Index, err)
}
