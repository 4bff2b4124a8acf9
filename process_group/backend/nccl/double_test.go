package nccl

import (
	"errors"
	"sync"

	"github.com/goccl/goccl/process_group/backend/nccl/libnccl"
)

// double is a port on which a test decides what NCCL says.
type double struct {
	mu       sync.Mutex
	launched []*job
	sealed   []*job
	done     map[*job]bool
	answer   libnccl.Result // of launch
	fails    error          // of launch
	behind   libnccl.Result // of state
	broken   error          // of state
	blocks   bool           // mayBlock
	gate     chan struct{}  // launch waits for it; nil: it does not
	inside   int            // launches that have begun to wait
	aborts   int
	closes   int
	hold     chan struct{} // close waits for it
	device   error         // of ended
}

var _ port = (*double)(nil)

func (d *double) with(fn func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fn()
}

func (d *double) launch(j *job) (libnccl.Result, error) {
	if d.gate != nil {
		d.with(func() { d.inside++ })
		<-d.gate
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.launched = append(d.launched, j)
	return d.answer, d.fails
}

func (d *double) seal(j *job) error {
	d.with(func() { d.sealed = append(d.sealed, j) })
	return nil
}

func (d *double) mayBlock(*job) bool { return d.blocks }

func (d *double) ended(j *job) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.done[j], d.device
}

func (d *double) state() (libnccl.Result, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.behind, d.broken
}

func (d *double) abort() error {
	d.with(func() { d.aborts++ })
	return errors.New("noted")
}

func (d *double) close() error {
	if d.hold != nil {
		<-d.hold
	}
	d.with(func() { d.closes++ })
	return nil
}

func (d *double) finish(j *job) {
	d.with(func() {
		if d.done == nil {
			d.done = map[*job]bool{}
		}
		d.done[j] = true
	})
}

func (d *double) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.launched)
}
