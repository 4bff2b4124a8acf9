package cuda

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/internal/dl"
	"github.com/goccl/goccl/internal/spin"
)

// Flags of cuEventCreate.
const (
	eventNoTiming     = 2
	eventInterprocess = 4
)

// Event is a point in a stream. It is safe for concurrent use, up to Release.
type Event struct {
	dev    *Device
	handle uintptr
	kind   eventKind
	shared bool // between processes: streams of other GPUs cannot wait for it
}

// eventKind says what becomes of an event that is released.
type eventKind uint8

const (
	pooled   eventKind = iota // reused
	single                    // destroyed
	borrowed                  // left alone: somebody else made it
)

var _ device.Event = (*Event)(nil)

// eventPool keeps events for reuse: making one costs microseconds and may wait
// for the device's other threads.
type eventPool struct {
	dev  *Device
	mu   sync.Mutex // a leaf, held for a few instructions
	free []*Event
}

func (p *eventPool) get() (*Event, error) {
	p.mu.Lock()
	if n := len(p.free); n > 0 {
		e := p.free[n-1]
		p.free = p.free[:n-1]
		p.mu.Unlock()
		return e, nil
	}
	p.mu.Unlock()
	return p.dev.newEvent(eventNoTiming, pooled)
}

func (p *eventPool) put(e *Event) {
	p.mu.Lock()
	p.free = append(p.free, e)
	p.mu.Unlock()
}

// drain destroys what lies in the pool.
func (p *eventPool) drain() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var first error
	for _, e := range p.free {
		if err := e.destroy(); first == nil {
			first = err
		}
	}
	p.free = nil
	return first
}

func (d *Device) newEvent(flags uintptr, kind eventKind) (*Event, error) {
	e := &Event{dev: d, kind: kind}
	err := d.setup(func() error { return d.drv.do(cuEventCreate, uintptr(unsafe.Pointer(&e.handle)), flags) })
	if err != nil {
		return nil, err
	}
	return e, nil
}

// NewEvent returns an event for Section.RecordTo, which may be recorded again and
// again. It is not pooled: Release destroys it. An event that was never recorded
// is done.
func (d *Device) NewEvent() (*Event, error) { return d.newEvent(eventNoTiming, single) }

// NewTimer is NewEvent for Elapsed. Recording it costs the GPU more.
func (d *Device) NewTimer() (*Event, error) { return d.newEvent(0, single) }

// WrapEvent returns an event that somebody else made and keeps until the wrapped
// one is released.
func (d *Device) WrapEvent(handle uintptr) (*Event, error) {
	e := &Event{dev: d, handle: handle, kind: borrowed}
	if handle == 0 {
		return nil, d.wrap(fmt.Errorf("%w: the event is 0", goccl.ErrInvalid))
	}
	if _, err := e.Done(); err != nil {
		return nil, fmt.Errorf("event %#x: %w", handle, err)
	}
	return e, nil
}

// Record queues an event of the device's pool.
func (c Section) Record() (*Event, error) {
	e, err := c.s.dev.pool.get()
	if err != nil {
		return nil, err
	}
	if err := c.RecordTo(e); err != nil {
		e.Release()
		return nil, err
	}
	return e, nil
}

// RecordTo queues e: it is done when all work queued so far is. It replaces the
// point at which e was recorded before; streams that wait for that one still do.
func (c Section) RecordTo(e *Event) error { return c.fast(cuEventRecord, e.handle, c.s.handle) }

// Wait makes later work of the stream wait for e, of any device. Only an event that
// processes share (see NewSharedEvent) must be of the stream's own.
func (c Section) Wait(e *Event) error {
	if e.shared && e.dev.ctx != c.s.dev.ctx {
		return c.s.dev.apart(e)
	}
	return c.fast(cuStreamWaitEvent, c.s.handle, e.handle, 0)
}

// Handle returns the driver's handle, for other libraries.
func (e *Event) Handle() uintptr { return e.handle }

// Done reports whether the event is done. Three short calls of the driver, about
// half a microsecond; no context is entered.
func (e *Event) Done() (bool, error) {
	runtime.LockOSThread()
	old := e.dev.drv.exchange(captureRelaxed)
	code := Code(dl.Int32(e.dev.drv.procs[cuEventQuery].Fast(e.handle)))
	e.dev.drv.exchange(old)
	runtime.UnlockOSThread()
	switch code {
	case 0:
		return true, nil
	case NotReady:
		return false, nil
	}
	return false, e.dev.wrap(e.dev.drv.failure(cuEventQuery, code))
}

// Wait blocks the goroutine until the event is done or ctx ends.
func (e *Event) Wait(ctx context.Context) error {
	if done, err := e.Done(); done || err != nil {
		return err
	}
	return e.wait(ctx)
}

// wait stands apart because its waiter is on the heap.
func (e *Event) wait(ctx context.Context) error {
	w := spin.Waiter{Policy: spin.Policy{Local: true}}
	defer w.Reset()
	for {
		if done, err := e.Done(); done || err != nil {
			return err
		}
		if ctx.Err() != nil {
			return e.dev.wrap(fmt.Errorf("waiting for the device: %w", context.Cause(ctx)))
		}
		w.Turn()
	}
}

// Elapsed returns the device time between two events of NewTimer that are done,
// in steps of about half a microsecond.
func (e *Event) Elapsed(since *Event) (time.Duration, error) {
	var ms float32
	err := e.dev.setup(func() error {
		return e.dev.drv.do(cuEventElapsedTime, uintptr(unsafe.Pointer(&ms)), since.handle, e.handle)
	})
	return time.Duration(float64(ms) * float64(time.Millisecond)), err
}

// Release gives the event back.
func (e *Event) Release() {
	switch e.kind {
	case pooled:
		e.dev.pool.put(e)
	case single:
		_ = e.destroy() // nothing is lost but the event
	}
}

func (e *Event) destroy() error {
	return e.dev.setup(func() error { return e.dev.drv.do(cuEventDestroy, e.handle) })
}
