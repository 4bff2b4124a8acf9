package host

import (
	"context"
	"fmt"
	"sync"
	"unsafe"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
)

// Stream is a queue of functions that a goroutine runs in order. The goroutine
// exists while there is work.
type Stream struct {
	dev *Device

	mu      sync.Mutex
	work    []func()
	running bool
	closed  bool
}

var (
	_ device.Stream = (*Stream)(nil)
	_ device.Copier = (*Stream)(nil)
	_ device.Filler = (*Stream)(nil)
)

func newStream(d *Device) *Stream { return &Stream{dev: d} }

// Do queues fn and does not wait for it. fn must not call the stream and wait.
func (s *Stream) Do(fn func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("host: stream: %w", goccl.ErrClosed)
	}
	s.work = append(s.work, fn)
	if !s.running {
		s.running = true
		go s.run()
	}
	return nil
}

func (s *Stream) run() {
	for {
		s.mu.Lock()
		if len(s.work) == 0 {
			s.running = false
			s.mu.Unlock()
			return
		}
		fn := s.work[0]
		s.work = s.work[1:]
		s.mu.Unlock()
		fn()
	}
}

// Copy queues a copy. Overlapping memory is copied as if through a third place.
func (s *Stream) Copy(dst, src uintptr, bytes int) error {
	return s.Do(func() { copy(span(dst, bytes), span(src, bytes)) })
}

// Fill queues setting bytes of memory to v.
func (s *Stream) Fill(dst uintptr, v byte, bytes int) error {
	return s.Do(func() {
		b := span(dst, bytes)
		for i := range b {
			b[i] = v
		}
	})
}

func span(addr uintptr, bytes int) []byte {
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&addr)), bytes)
}

// Record returns an event that is done when all work queued so far is.
func (s *Stream) Record() (device.Event, error) {
	e := &event{done: make(chan struct{})}
	if err := s.Do(func() { close(e.done) }); err != nil {
		return nil, err
	}
	return e, nil
}

// WaitEvent makes later work wait for e.
func (s *Stream) WaitEvent(e device.Event) error {
	ev, ok := e.(*event)
	if !ok {
		return fmt.Errorf("host: %w: a stream cannot wait for an event of type %T", goccl.ErrInvalid, e)
	}
	return s.Do(func() { <-ev.done })
}

// Sync blocks until all work queued so far is done or ctx ends.
func (s *Stream) Sync(ctx context.Context) error {
	e, err := s.Record()
	if err != nil {
		return err
	}
	defer e.Release()
	return e.Wait(ctx)
}

// Handle returns 0.
func (s *Stream) Handle() uintptr { return 0 }

// Close lets queued work finish.
func (s *Stream) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		s.dev.letGo(&s.dev.streams)
	}
	return nil
}

type event struct{ done chan struct{} }

func (e *event) Done() (bool, error) {
	select {
	case <-e.done:
		return true, nil
	default:
		return false, nil
	}
}

func (e *event) Wait(ctx context.Context) error {
	select {
	case <-e.done:
		return nil
	default:
	}
	select {
	case <-e.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("host: waiting for a stream: %w", context.Cause(ctx))
	}
}

// Release leaves the event to the collector.
func (e *event) Release() {}
