package bucket

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl"
)

// handle is an operation under way: processgroup.Work, or a double in tests.
type handle interface {
	Test() (bool, error)
	Wait(ctx context.Context) error
}

// effects is what the engine asks its owner to do. start must not block and is
// called without the engine's lock; so is fill, but for finish, which nobody
// contends with.
type effects[W handle] interface {
	fill(i int) error // copy gradient i into its slot
	zero(i int) error // make its slot zero
	start(b int)      // start the reduction of bucket b; the handle is then at work(b)
	work(b int) W
}

// engine drives the machine from any number of goroutines: it serialises events
// with one short lock, performs launches outside of it, one at a time and in
// order, and keeps the times.
//
// Lock order: mu is a leaf.
type engine[W handle] struct {
	fx    effects[W]
	clock func() time.Time

	mu       sync.Mutex
	idleCond *sync.Cond // signalled when starting becomes false
	m        *machine
	allowed  int  // buckets that the machine has launched
	started  int  // buckets whose start has returned
	starting bool // some goroutine is inside fx.start
	observed int  // buckets [0, observed) were seen to have ended
	times    timeline

	// claims holds per parameter the last step in which it was announced, so
	// that a second announcement is caught before it copies over data in flight.
	claims []atomic.Uint64
	step   atomic.Uint64
	noSync atomic.Bool
}

func newEngine[W handle](fx effects[W], m *machine, clock func() time.Time) *engine[W] {
	e := &engine[W]{fx: fx, m: m, clock: clock, claims: make([]atomic.Uint64, len(m.names))}
	e.idleCond = sync.NewCond(&e.mu)
	e.step.Store(1)
	e.times.reset(len(m.members))
	return e
}

// ready announces gradient i. It copies, takes the lock once, starts what can
// start, and pushes the oldest operation in flight; it never waits and never
// allocates.
func (e *engine[W]) ready(i int) error {
	if i < 0 || i >= len(e.claims) || e.noSync.Load() {
		return e.announce(i)
	}
	step := e.step.Load()
	if old := e.claims[i].Load(); old == step || !e.claims[i].CompareAndSwap(old, step) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.m.twice(i)
		return e.m.err
	}
	if err := e.fx.fill(i); err != nil {
		e.fail(err)
		return err
	}
	return e.announce(i)
}

func (e *engine[W]) announce(i int) error {
	oldest, at, push, err := e.enter(i)
	if err == nil && push {
		e.push(at, oldest)
	}
	return err
}

// enter is the part of announce under the lock. It returns the oldest operation
// in flight, if there is one.
func (e *engine[W]) enter(i int) (oldest W, at int, push bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.m.mode.noSync {
		e.times.begin(e.clock)
	}
	err = e.perform(e.m.gradReady(i))
	e.drain()
	if at = e.observed; at < e.started {
		oldest, push = e.fx.work(at), true
	}
	return oldest, at, push, err
}

// push lets operation b progress and notes when it has ended. What went wrong
// with it is told by the wait for it in Finish.
func (e *engine[W]) push(b int, w W) {
	ended, err := w.Test()
	if !ended && err == nil {
		return
	}
	e.mu.Lock()
	if e.observed == b && b < e.started {
		e.observe(b)
	}
	e.mu.Unlock()
}

func (e *engine[W]) observe(b int) {
	e.observed = b + 1
	e.times.bucket[b].done = e.times.since(e.clock)
}

// perform takes in the actions of an event that came from Ready. It is called
// with the lock held; only launches and failures come from there.
func (e *engine[W]) perform(acts []action) error {
	for _, a := range acts {
		switch a.kind {
		case actLaunch:
			e.allowed = a.index + 1
			e.times.bucket[a.index].ready = e.times.since(e.clock)
		case actFail:
			return e.m.err
		}
	}
	return nil
}

// drain starts every bucket that may start, in order. It is called with the lock
// held and returns with it held; while one goroutine is inside start the others
// leave their launches to it, so that none waits and the order holds.
func (e *engine[W]) drain() {
	for !e.starting && e.started < e.allowed {
		e.starting = true
		e.startNext(e.started)
	}
}

// startNext runs start without the lock. When a hook panics the panic goes on, the
// step has failed, and whoever waits for the launch is not left waiting.
func (e *engine[W]) startNext(b int) {
	e.mu.Unlock()
	returned := false
	defer func() {
		e.mu.Lock()
		e.starting = false
		e.idleCond.Broadcast()
		if !returned {
			e.allowed = e.started
			e.m.fail(fmt.Errorf("%w: the hook panicked on bucket %d", goccl.ErrAborted, b))
			return
		}
		e.times.bucket[b].launched = e.times.since(e.clock)
		e.started = b + 1
	}()
	e.fx.start(b)
	returned = true
}
