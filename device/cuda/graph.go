package cuda

import (
	"fmt"
	"sync"
	"unsafe"
)

// captureActive is the state of a stream whose work is being recorded.
const captureActive = 1

// Graph is work that was captured and has not run.
type Graph struct {
	dev    *Device
	handle uintptr

	once sync.Once
	err  error
}

// BeginCapture makes work that is queued from now on be recorded instead of run,
// until EndCapture. Streams that wait for an event of this one are drawn in, and
// must be joined again by an event before the end. Goroutines may change threads
// meanwhile, so the capture is in relaxed mode: nothing else that the process does
// ends it.
func (s *Stream) BeginCapture() error {
	return s.dev.setup(func() error { return s.dev.drv.do(cuStreamBeginCapture, s.handle, captureRelaxed) })
}

// EndCapture ends the capture and returns what was queued.
func (s *Stream) EndCapture() (*Graph, error) {
	if err := s.dev.hold("graphs"); err != nil {
		return nil, err
	}
	g := &Graph{dev: s.dev}
	err := s.dev.setup(func() error { return s.dev.drv.do(cuStreamEndCapture, s.handle, uintptr(unsafe.Pointer(&g.handle))) })
	if err != nil {
		s.dev.letGo("graphs")
		return nil, err
	}
	return g, nil
}

// Capture records the work that fn queues to the stream. When fn fails the stream
// is as it was, and its error is returned.
func (s *Stream) Capture(fn func() error) (*Graph, error) {
	if err := s.BeginCapture(); err != nil {
		return nil, err
	}
	failed := fn()
	g, err := s.EndCapture()
	if failed != nil {
		if err == nil {
			_ = g.Close() // the first error says more
		}
		return nil, fmt.Errorf("capturing: %w", failed)
	}
	return g, err
}

// Capturing reports whether the stream is being captured, by whomever.
func (s *Stream) Capturing() (bool, error) {
	var state int32
	err := s.dev.setup(func() error {
		return s.dev.drv.do(cuStreamIsCapturing, s.handle, uintptr(unsafe.Pointer(&state)))
	})
	return state == captureActive, err
}

// Capturing is Stream.Capturing within a section, for hot paths.
func (c Section) Capturing() (bool, error) {
	s := scratches.Get().(*scratch)
	err := c.fast(cuStreamIsCapturing, c.s.handle, uintptr(unsafe.Pointer(&s.mode)))
	active := s.mode == captureActive
	scratches.Put(s)
	return active, err
}

// Instantiate makes the graph ready to run. The graph may be closed afterwards.
//
// It may wait until kernels that run in this process have ended. So with kernels that
// wait for each other, those of a collective for example, capture and instantiate on
// all ranks of the process before anything that waits is launched on one of them: a
// rank that instantiates while another's kernel waits for its own waits for ever.
func (g *Graph) Instantiate() (*Executable, error) {
	if err := g.dev.hold("executable graphs"); err != nil {
		return nil, err
	}
	x := &Executable{dev: g.dev}
	err := g.dev.setup(func() error {
		return g.dev.drv.do(cuGraphInstantiateWithFlags, uintptr(unsafe.Pointer(&x.handle)), g.handle, 0)
	})
	if err != nil {
		g.dev.letGo("executable graphs")
		return nil, err
	}
	return x, nil
}

// Close frees the graph. It is idempotent.
func (g *Graph) Close() error {
	g.once.Do(func() {
		g.err = g.dev.setup(func() error { return g.dev.drv.do(cuGraphDestroy, g.handle) })
		g.dev.letGo("graphs")
	})
	return g.err
}

// Executable is a graph that can be launched, again and again. All memory that its
// work uses must stay.
type Executable struct {
	dev    *Device
	handle uintptr

	once sync.Once
	err  error
}

// Replay queues all work of the graph and does not wait for it. Two replays of one
// graph do not overlap.
func (c Section) Replay(x *Executable) error { return c.fast(cuGraphLaunch, x.handle, c.s.handle) }

// Close frees the graph once its work is done, without waiting. It is idempotent.
func (x *Executable) Close() error {
	x.once.Do(func() {
		x.err = x.dev.setup(func() error { return x.dev.drv.do(cuGraphExecDestroy, x.handle) })
		x.dev.letGo("executable graphs")
	})
	return x.err
}
