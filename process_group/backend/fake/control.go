package fake

import (
	"context"
	"slices"
	"sync"

	processgroup "github.com/goccl/goccl/process_group"
)

// Control is a processgroup.Control that a test plays the other ranks with. The
// zero value is ready. It is safe for concurrent use.
type Control struct {
	mu       sync.Mutex
	told     error
	cause    error
	listener func(error)
	lags     []processgroup.Lag
	asked    int
	missing  []int
	barrier  error
}

var _ processgroup.Control = (*Control)(nil)

// Fail implements processgroup.Control: it keeps err for Told.
func (c *Control) Fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.told == nil {
		c.told = err
	}
}

// Told returns what the group told its peers, nil for nothing.
func (c *Control) Told() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.told
}

// OnFailure implements processgroup.Control.
func (c *Control) OnFailure(f func(cause error)) {
	c.mu.Lock()
	cause := c.cause
	c.listener = f
	c.mu.Unlock()
	if cause != nil {
		f(cause)
	}
}

// PeerFails plays a peer that tells this rank of its failure. Only the first counts.
func (c *Control) PeerFails(cause error) {
	c.mu.Lock()
	first := c.cause == nil
	if first {
		c.cause = cause
	}
	f := c.listener
	c.mu.Unlock()
	if first && f != nil {
		f(cause)
	}
}

// SetLaggards sets what Laggards answers.
func (c *Control) SetLaggards(lags ...processgroup.Lag) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lags = lags
}

// Laggards implements processgroup.Control.
func (c *Control) Laggards(context.Context, uint64) []processgroup.Lag {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	return slices.Clone(c.lags)
}

// Asked returns how often Laggards was called.
func (c *Control) Asked() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked
}

// SetBarrier sets what MonitoredBarrier returns.
func (c *Control) SetBarrier(missing []int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.missing, c.barrier = missing, err
}

// MonitoredBarrier implements processgroup.Control.
func (c *Control) MonitoredBarrier(context.Context) ([]int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.missing), c.barrier
}
