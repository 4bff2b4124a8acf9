package comm

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/exec"
	"github.com/goccl/goccl/internal/spin"
)

// engine runs the operations of one communicator in order. Whoever holds the
// token steps them: a caller inside Start (small operations), a caller inside
// Wait or Test, or the runner, the communicator's own goroutine, which gives way
// to callers.
type engine struct {
	mu      sync.Mutex // guards the queue, what Start decides from, and the log of calls
	head    *Task
	tail    *Task
	queued  int
	closed  bool
	seq     uint64 // collectives so far
	history uint64 // of all their signatures
	calls   callLog

	token   sync.Mutex
	waiter  spin.Waiter  // of the token's holder
	turns   uint32       // of the current wait
	waiters atomic.Int32 // callers that want the token; the runner gives way
	runs    []*exec.Run  // free runs, one in use for each chain
	watch   watch        // of the operation at the head

	failed  atomic.Pointer[failure]
	kick    chan struct{} // wakes the runner
	stop    chan struct{}
	stopped chan struct{}
}

// failure is the first cause; it ends every operation from then on.
type failure struct{ err error }

// push appends t. Called with mu held.
func (e *engine) push(t *Task) {
	t.next = nil
	if e.tail == nil {
		e.head = t
	} else {
		e.tail.next = t
	}
	e.tail = t
	e.queued++
}

// front returns the oldest operation.
func (e *engine) front() *Task {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.head
}

// nudge wakes the runner.
func (e *engine) nudge() {
	select {
	case e.kick <- struct{}{}:
	default:
	}
}

// Start queues the operation in t and posts what it can. It never waits for a
// peer. An error refuses the call: nothing was queued, and no peer knows of it.
func (c *Communicator) Start(t *Task) error {
	if !t.Checked {
		if err := t.Call.check(c.rank, c.size); err != nil {
			return err
		}
	}
	c.mu.Lock()
	if err := c.admit(t); err != nil {
		c.mu.Unlock()
		return err
	}
	eager := c.head == t && t.Coll != 0 && t.part.bound != nil && t.part.args.Unit <= eagerBytes
	c.mu.Unlock()
	if !eager {
		c.nudge()
		return nil
	}
	if !c.token.TryLock() {
		c.nudge()
		return nil
	}
	c.advance()
	posted := t.state.Load() == done || t.part.run != nil && t.part.run.Posted()
	c.token.Unlock()
	if !posted {
		c.nudge()
	}
	return nil
}

// admit prepares t and puts it into the queue. Called with mu held.
func (c *Communicator) admit(t *Task) error {
	if f := c.failed.Load(); f != nil {
		return f.err
	}
	if c.closed {
		return goccl.ErrClosed
	}
	if err := c.prepareTask(t); err != nil {
		return err
	}
	t.err, t.broken = nil, false
	if t.Coll == 0 { // a batch is made of transfers, or of several choices
		t.Algo, t.Proto, t.Channels = goccl.Direct, goccl.AutoProto, 1
	} else {
		t.Algo, t.Proto, t.Channels = t.part.key.Algo, t.part.key.Proto, int(t.part.key.Channels)
	}
	t.state.Store(queued)
	c.calls.add(t)
	c.push(t)
	return nil
}

// Test reports whether t has ended. It never blocks and pushes operations on.
func (c *Communicator) Test(t *Task) (bool, error) {
	if t.state.Load() != done && c.token.TryLock() {
		if f := c.failed.Load(); f != nil {
			c.flush(f)
		} else {
			c.advance()
		}
		c.token.Unlock()
	}
	if t.state.Load() != done {
		return false, nil
	}
	return true, t.err
}

// Wait blocks until t has ended or ctx does, and helps to run it. When ctx ends
// first the operation goes on, and the error wraps context.Cause(ctx).
func (c *Communicator) Wait(ctx context.Context, t *Task) error {
	err, _ := c.wait(ctx, t)
	return err
}

func (c *Communicator) wait(ctx context.Context, t *Task) (err error, ended bool) {
	if t.state.Load() == done {
		return t.err, true
	}
	c.waiters.Add(1)
	for tries := 0; t.state.Load() != done; tries++ {
		if c.token.TryLock() {
			err = c.drive(ctx, t, false)
			c.token.Unlock()
		} else {
			err = c.elbow(ctx, tries)
		}
		if err != nil {
			break
		}
	}
	c.waiters.Add(-1)
	if c.queuedNow() > 0 {
		c.nudge()
	}
	if err != nil {
		return err, false
	}
	return t.err, true
}

func (e *engine) queuedNow() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.queued
}

// elbow passes time while another goroutine holds the token.
func (c *Communicator) elbow(ctx context.Context, tries int) error {
	if tries%16 == 15 && ctx.Err() != nil {
		return c.interrupted(ctx)
	}
	if tries < 200 {
		yield()
	} else {
		time.Sleep(50 * time.Microsecond)
	}
	return nil
}

// drive steps operations until t has ended, or the queue is empty when t is nil.
// The runner also returns when a caller wants the token. Called with the token.
func (c *Communicator) drive(ctx context.Context, t *Task, runner bool) error {
	c.waiter.Reset()
	defer c.waiter.Reset()
	for c.turns = 0; ; c.turns++ {
		if f := c.failed.Load(); f != nil {
			c.flush(f)
			return nil
		}
		head, moved := c.advance()
		switch {
		case head == nil, t != nil && t.state.Load() == done:
			return nil
		case runner && c.waiters.Load() > 0:
			return nil
		case moved:
			c.waiter.Reset()
			continue
		}
		if c.turns%16 == 15 {
			if ctx.Err() != nil {
				return c.interrupted(ctx)
			}
			c.watchHead(head)
		}
		c.await(head)
	}
}

// hotPolls is how often a blocked operation is looked at before anything else is:
// about the time in which a peer that is on its way arrives.
const hotPolls = 32

// await passes a wait for the operation at the head: turn by turn, and at first
// looking at nothing but what the operation waits for.
func (c *Communicator) await(head *Task) {
	c.waiter.Word = head.word()
	c.waiter.Turn()
	r := head.part.run
	if r == nil || c.turns > 0 {
		return
	}
	for i := 1; i < hotPolls && !r.Unblocked(); i++ {
		c.waiter.Turn()
	}
}

// advance steps the queue as far as it goes without waiting, and returns what is
// then at its head. Called with the token held.
func (c *Communicator) advance() (head *Task, moved bool) {
	for {
		t := c.front()
		if t == nil {
			return nil, moved
		}
		if t.broken {
			return t, moved
		}
		ended, m, err := c.step(t)
		moved = moved || m
		if err != nil {
			t.broken = true
			c.broken(t, err)
			return t, moved
		}
		if !ended {
			return t, moved
		}
		c.complete(t, nil)
	}
}

// complete takes t off the head of the queue. Called with the token held.
func (c *Communicator) complete(t *Task, err error) {
	t.err = err
	t.Src.Owner, t.Dst.Owner = nil, nil // the buffers are the user's again
	clear(t.Batch)
	c.mu.Lock()
	c.head = t.next
	if c.head == nil {
		c.tail = nil
	}
	c.queued--
	c.mu.Unlock()
	c.watch = watch{}
	t.state.Store(done)
}

// flush ends everything that is queued with the failure. Called with the token.
func (c *Communicator) flush(f *failure) {
	for t := c.front(); t != nil; t = c.front() {
		c.release(t)
		c.complete(t, c.taskError(t, f.err))
	}
}

// run is the runner: it steps what nobody waits for.
func (c *Communicator) run() {
	defer close(c.stopped)
	for {
		select {
		case <-c.kick:
		case <-c.stop:
			return
		}
		if c.waiters.Load() > 0 {
			continue // the last of them wakes the runner when something is left
		}
		c.token.Lock()
		// An error here is a failure, which drive has already turned into the end
		// of every operation.
		_ = c.drive(c.life, nil, true)
		c.token.Unlock()
	}
}
