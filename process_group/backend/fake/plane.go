package fake

import (
	"context"
	"fmt"
	"os"
	"sync"

	processgroup "github.com/goccl/goccl/process_group"
	"github.com/goccl/goccl/trace"
)

// controlPlane is what the ranks of a World tell each other.
type controlPlane struct {
	mu        sync.Mutex
	cause     error
	listeners []func(error)
	stopped   []bool
	arrived   []int // monitored barriers called, by rank
	changed   chan struct{}
}

func (c *controlPlane) init(n int) {
	c.listeners = make([]func(error), n)
	c.stopped = make([]bool, n)
	c.arrived = make([]int, n)
	c.changed = make(chan struct{})
}

// SetStopped plays a rank that was stopped by a signal, or goes on.
func (w *World) SetStopped(rank int, stopped bool) {
	w.control.mu.Lock()
	defer w.control.mu.Unlock()
	w.control.stopped[rank] = stopped
}

// side is the control plane as one rank sees it.
type side struct {
	world *World
	rank  int
}

var _ processgroup.Control = (*side)(nil)

// Fail implements processgroup.Control.
func (s *side) Fail(err error) {
	c := &s.world.control
	c.mu.Lock()
	if c.cause != nil {
		c.mu.Unlock()
		return
	}
	c.cause = err
	listeners := append([]func(error){}, c.listeners...)
	c.mu.Unlock()
	for _, f := range listeners {
		if f != nil {
			f(err)
		}
	}
}

// OnFailure implements processgroup.Control.
func (s *side) OnFailure(f func(cause error)) {
	c := &s.world.control
	c.mu.Lock()
	c.listeners[s.rank] = f
	cause := c.cause
	c.mu.Unlock()
	if cause != nil {
		f(cause)
	}
}

// Laggards implements processgroup.Control.
func (s *side) Laggards(_ context.Context, seq uint64) []processgroup.Lag {
	w := s.world
	w.mu.Lock()
	begun := make([]uint64, len(w.ports))
	for r, p := range w.ports {
		begun[r] = p.begun
	}
	w.mu.Unlock()
	w.control.mu.Lock()
	defer w.control.mu.Unlock()
	host, _ := os.Hostname() // an unknown name is left out
	var lags []processgroup.Lag
	for r := range begun {
		l := processgroup.Lag{Rank: r, Host: host, PID: os.Getpid(), Seq: begun[r], State: trace.Running}
		if w.control.stopped[r] {
			l.State = trace.Stopped
		} else if begun[r] >= seq {
			continue
		}
		lags = append(lags, l)
	}
	return lags
}

// MonitoredBarrier implements processgroup.Control.
func (s *side) MonitoredBarrier(ctx context.Context) ([]int, error) {
	c := &s.world.control
	c.mu.Lock()
	c.arrived[s.rank]++
	round := c.arrived[s.rank]
	close(c.changed)
	c.changed = make(chan struct{})
	c.mu.Unlock()
	for {
		c.mu.Lock()
		var missing []int
		for r, n := range c.arrived {
			if n < round {
				missing = append(missing, r)
			}
		}
		changed := c.changed
		c.mu.Unlock()
		if len(missing) == 0 {
			return nil, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return missing, fmt.Errorf("monitored barrier: %w", context.Cause(ctx))
		}
	}
}
