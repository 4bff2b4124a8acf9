package cuda

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
)

// Handles that are no addresses: the default streams.
const (
	legacyStream    = 1 // waits for, and holds up, every blocking stream of the context
	perThreadStream = 2 // another stream on every OS thread
)

// nonBlocking makes a stream independent of the legacy default stream.
const nonBlocking = 1

// Stream is a queue of work on one GPU. Methods of the stream enter the context
// once a call; Enter does so for many. See device.Stream for what may be called
// concurrently.
type Stream struct {
	dev    *Device
	handle uintptr
	owned  bool
	closed atomic.Bool
}

var (
	_ device.Stream = (*Stream)(nil)
	_ device.Copier = (*Stream)(nil)
	_ device.Filler = (*Stream)(nil)
)

// NewStream returns a stream that is independent of the default stream. A lower
// prio is served first; 0 is the lowest priority there is, and Priorities says
// how far down the numbers go.
func (d *Device) NewStream(prio int) (device.Stream, error) {
	s, err := d.Stream(prio)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Stream is NewStream with the type of this package.
func (d *Device) Stream(prio int) (*Stream, error) {
	if err := d.hold("streams"); err != nil {
		return nil, err
	}
	s, err := d.newStream(prio)
	if err != nil {
		d.letGo("streams")
		return nil, d.wrap(err)
	}
	return s, nil
}

// newStream makes a stream that the device does not count.
func (d *Device) newStream(prio int) (*Stream, error) {
	s := &Stream{dev: d, owned: true}
	err := d.drv.within(d.ctx, func() error {
		return d.drv.relaxed(func() error {
			return d.drv.do(cuStreamCreateWithPriority, uintptr(unsafe.Pointer(&s.handle)), nonBlocking, uintptr(prio))
		})
	})
	return s, err
}

// Priorities returns the priority that is served first and the one that is
// served last; -5 and 0 on recent GPUs.
func (d *Device) Priorities() (first, last int, err error) {
	var least, greatest int32
	err = d.setup(func() error {
		return d.drv.do(cuCtxGetStreamPriorityRange, uintptr(unsafe.Pointer(&least)), uintptr(unsafe.Pointer(&greatest)))
	})
	return int(greatest), int(least), err
}

// WrapStream returns a stream that somebody else made and keeps until the wrapped
// one is no longer used; Close leaves it alone. It must belong to the device's
// context. 0 and 1 are the legacy default stream. The per-thread default stream
// (2) is refused: goroutines change threads, so it would be another stream at
// every call.
func (d *Device) WrapStream(handle uintptr) (*Stream, error) {
	switch handle {
	case 0:
		handle = legacyStream // the same stream, told apart from no stream at all
	case perThreadStream:
		return nil, d.wrap(fmt.Errorf("%w: the per-thread default stream is another one on every OS thread; make a stream of your own", goccl.ErrInvalid))
	}
	var ctx uintptr
	err := d.setup(func() error { return d.drv.do(cuStreamGetCtx, handle, uintptr(unsafe.Pointer(&ctx))) })
	if err != nil {
		return nil, fmt.Errorf("stream %#x: %w", handle, err)
	}
	if ctx != d.ctx {
		return nil, d.wrap(fmt.Errorf("%w: stream %#x belongs to context %#x and the device is open on %#x; open that one with Driver.WrapContext",
			goccl.ErrInvalid, handle, ctx, d.ctx))
	}
	return &Stream{dev: d, handle: handle}, nil
}

// Device returns the device of the stream.
func (s *Stream) Device() *Device { return s.dev }

// Handle returns the driver's handle, for other libraries. It is never 0.
func (s *Stream) Handle() uintptr { return s.handle }

// Priority returns the priority that the driver gave the stream.
func (s *Stream) Priority() (int, error) {
	var prio int32
	err := s.dev.setup(func() error { return s.dev.drv.do(cuStreamGetPriority, s.handle, uintptr(unsafe.Pointer(&prio))) })
	return int(prio), err
}

// Record returns an event that is done when all work queued so far is.
func (s *Stream) Record() (device.Event, error) {
	sec, err := s.Enter()
	if err != nil {
		return nil, err
	}
	defer sec.Leave()
	e, err := sec.Record()
	if err != nil {
		return nil, err
	}
	return e, nil
}

// WaitEvent makes later work wait for e, an event of this package.
func (s *Stream) WaitEvent(e device.Event) error {
	ev, ok := e.(*Event)
	if !ok {
		return s.dev.wrap(fmt.Errorf("%w: a stream cannot wait for an event of type %T", goccl.ErrInvalid, e))
	}
	sec, err := s.Enter()
	if err != nil {
		return err
	}
	defer sec.Leave()
	return sec.Wait(ev)
}

// Copy queues a copy between any memory of GPUs and the host.
func (s *Stream) Copy(dst, src uintptr, bytes int) error {
	sec, err := s.Enter()
	if err != nil {
		return err
	}
	defer sec.Leave()
	return sec.Copy(dst, src, bytes)
}

// Fill queues setting bytes of memory to v.
func (s *Stream) Fill(dst uintptr, v byte, bytes int) error {
	sec, err := s.Enter()
	if err != nil {
		return err
	}
	defer sec.Leave()
	return sec.Fill(dst, v, bytes)
}

// Sync blocks until all work queued so far is done or ctx ends. It cannot be
// used while the stream is being captured.
func (s *Stream) Sync(ctx context.Context) error {
	e, err := s.Record()
	if err != nil {
		return err
	}
	defer e.Release()
	return e.Wait(ctx)
}

// Close destroys the stream once its work is done, without waiting. A wrapped
// stream is left alone.
func (s *Stream) Close() error {
	if s.closed.Swap(true) || !s.owned {
		return nil
	}
	defer s.dev.letGo("streams")
	return s.dev.wrap(s.destroy())
}

func (s *Stream) destroy() error {
	return s.dev.drv.within(s.dev.ctx, func() error { return s.dev.drv.do(cuStreamDestroy, s.handle) })
}

// Section is a stretch of calls on one stream with the context entered once. Its
// calls queue work and do not wait; they neither allocate nor lock. A Section
// belongs to the goroutine that entered it, which must not start a call that
// could block it for long, since it keeps its OS thread.
type Section struct{ s *Stream }

// Enter makes the stream's context current on this goroutine's thread until
// Leave. Sections may be nested.
func (s *Stream) Enter() (Section, error) {
	if s.closed.Load() {
		return Section{}, s.dev.wrap(fmt.Errorf("stream: %w", goccl.ErrClosed))
	}
	runtime.LockOSThread()
	if err := s.dev.drv.fast(cuCtxPushCurrent, s.dev.ctx); err != nil {
		runtime.UnlockOSThread()
		return Section{}, s.dev.wrap(err)
	}
	return Section{s}, nil
}

// Leave ends the section.
func (c Section) Leave() {
	c.s.dev.drv.pop()
	runtime.UnlockOSThread()
}

// On returns the same section for another stream of the same device; only the
// section that was entered is left. It panics when t is of another context.
func (c Section) On(t *Stream) Section {
	if t.dev.ctx != c.s.dev.ctx {
		panic("cuda: Section.On with a stream of another context")
	}
	return Section{t}
}

// fast calls a function of the driver and says on which device it failed.
func (c Section) fast(p proc, args ...uintptr) error {
	if err := c.s.dev.drv.fast(p, args...); err != nil {
		return c.s.dev.wrap(err)
	}
	return nil
}
