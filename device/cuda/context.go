package cuda

import (
	"runtime"
	"sync"
	"unsafe"
)

// Modes of cuThreadExchangeStreamCaptureMode and cuStreamBeginCapture.
const (
	captureGlobal  = 0
	captureThread  = 1
	captureRelaxed = 2
)

// scratch is memory on the heap for the words that fast calls return.
type scratch struct {
	word uint64
	mode int32
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// within runs fn with ctx current on the thread and leaves the thread as it was.
func (d *Driver) within(ctx uintptr, fn func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := d.fast(cuCtxPushCurrent, ctx); err != nil {
		return err
	}
	defer d.pop()
	return fn()
}

// pop takes the current context off the thread's stack. It can fail only when
// the driver has gone, and then no call succeeds any more.
func (d *Driver) pop() {
	s := scratches.Get().(*scratch)
	_ = d.fast(cuCtxPopCurrent, uintptr(unsafe.Pointer(&s.word)))
	scratches.Put(s)
}

// exchange sets the thread's capture mode and returns the one it had. The thread
// must be locked.
func (d *Driver) exchange(mode int32) int32 {
	s := scratches.Get().(*scratch)
	s.mode = mode
	_ = d.fast(cuThreadExchangeStreamCaptureMode, uintptr(unsafe.Pointer(&s.mode))) // fails only for a mode that does not exist
	mode = s.mode
	scratches.Put(s)
	return mode
}

// relaxed runs fn while the thread has declared its calls harmless to captures
// by others.
func (d *Driver) relaxed(fn func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	old := d.exchange(captureRelaxed)
	defer d.exchange(old)
	return fn()
}

// setup runs fn, calls that make or free something, in the device's context and
// harmless to captures. Errors name the device.
func (d *Device) setup(fn func() error) error {
	return d.wrap(d.drv.within(d.ctx, func() error { return d.drv.relaxed(fn) }))
}
