package comm

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/exec"
	"github.com/goccl/goccl/internal/spin"
)

// engine runs the operations of one communicator in order. Whoever holds the
// token steps them: a caller inside Start (small operations), a caller inside
// Wait or Test, or the runner, the communicator's own goroutine, which gives way
// to callers.
//
// The token is a field under the queue's lock, not a lock of its own: taking it,
// finding the head of the queue and popping it are then one short section, and a
// whole operation takes four.
type engine struct {
	mu      sync.Mutex // guards the fields up to calls
	head    *Task      // only the token's holder pops
	tail    *Task
	held    bool // the token
	missed  bool // the runner was woken while the token was held
	closed  bool
	seq     uint64 // collectives so far
	history uint64 // of all their signatures
	calls   callLog

	// The token's holder owns these.
	waiter spin.Waiter
	turns  uint32      // of the current wait
	runs   []*exec.Run // free runs, one in use for each chain
	watch  watch       // of the operation at the head

	waiters atomic.Int32 // callers that want the token while another holds it
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
}

// acquire takes the token when it is free, and returns the head of the queue.
func (e *engine) acquire() (head *Task, ok bool) {
	e.mu.Lock()
	if ok = !e.held; ok {
		e.held, head = true, e.head
	}
	e.mu.Unlock()
	return head, ok
}

// release gives the token back. The runner is woken when it was turned away
// meanwhile, or when the caller asks for it and something is left.
func (e *engine) release(wake bool) {
	e.mu.Lock()
	wake = e.head != nil && (wake || e.missed)
	e.held, e.missed = false, false
	e.mu.Unlock()
	if wake {
		e.nudge()
	}
}

// complete takes t, the head, off the queue, ends it, and returns what is then at
// the head. The token goes back when free is set or nothing is left; the runner
// is woken for what is. Called with the token.
func (c *Communicator) complete(t *Task, err error, free bool) (next *Task) {
	t.err = err
	t.Src.Owner, t.Dst.Owner = nil, nil // the buffers are the user's again
	clear(t.Batch)
	c.watch = watch{}
	c.waiter.Reset()
	c.mu.Lock()
	next = t.next
	c.head = next
	if next == nil {
		c.tail = nil
	}
	free = free || next == nil
	if free {
		c.held, c.missed = false, false
	}
	t.done.Store(true)
	c.mu.Unlock()
	if free && next != nil {
		c.nudge()
	}
	return next
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
	eager := c.head == t && !c.held && t.Coll != 0 && t.part.bound != nil && t.part.args.Unit <= eagerBytes
	if eager {
		c.held = true
	}
	c.mu.Unlock()
	if !eager {
		c.nudge()
		return nil
	}
	ended, _, err := c.step(t)
	switch {
	case err != nil:
		t.broken = true
		c.broken(t, err)
		c.release(true)
	case ended:
		c.complete(t, nil, true)
	default:
		c.release(!t.part.run.Posted())
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
	t.done.Store(false)
	if t.Coll == 0 { // a batch is made of transfers, or of several choices
		t.Algo, t.Proto, t.Channels = goccl.Direct, goccl.AutoProto, 1
	} else {
		t.Algo, t.Proto, t.Channels = t.part.key.Algo, t.part.key.Proto, int(t.part.key.Channels)
	}
	c.calls.add(t)
	c.push(t)
	return nil
}

// Test reports whether t has ended. It never blocks and pushes operations on.
func (c *Communicator) Test(t *Task) (bool, error) {
	if !t.done.Load() {
		if head, ok := c.acquire(); ok {
			c.pushOn(head)
		}
	}
	if !t.done.Load() {
		return false, nil
	}
	return true, t.err
}

// pushOn steps the queue as far as it goes without waiting, and gives the token
// back.
func (c *Communicator) pushOn(head *Task) {
	if f := c.failed.Load(); f != nil {
		c.flush(head, f)
		return
	}
	if head, _ = c.advance(head, nil); head != nil {
		c.release(false)
	}
}

// Wait blocks until t has ended or ctx does, and helps to run it. When ctx ends
// first the operation goes on, and the error wraps context.Cause(ctx).
func (c *Communicator) Wait(ctx context.Context, t *Task) error {
	err, _ := c.wait(ctx, t)
	return err
}

func (c *Communicator) wait(ctx context.Context, t *Task) (err error, ended bool) {
	for !t.done.Load() {
		if head, ok := c.acquire(); ok {
			err = c.drive(ctx, head, t, false)
		} else {
			err = c.elbow(ctx, t)
		}
		if err != nil {
			c.nudge() // whoever gave way to this caller goes on
			return err, false
		}
	}
	return t.err, true
}

// drive steps operations from head until t has ended, or the queue is empty when
// t is nil. The runner also returns when a caller wants the token. Called with
// the token, which it gives back.
func (c *Communicator) drive(ctx context.Context, head, t *Task, runner bool) error {
	c.waiter.Reset()
	for c.turns = 0; ; c.turns++ {
		if f := c.failed.Load(); f != nil {
			c.flush(head, f)
			return nil
		}
		var moved bool
		if head, moved = c.advance(head, t); head == nil {
			return nil
		}
		if moved {
			c.waiter.Reset()
			continue
		}
		if runner && c.waiters.Load() > 0 {
			c.waiter.Reset()
			c.release(false) // the caller that waits for it goes on
			return nil
		}
		if c.turns%16 == 15 {
			if ctx.Err() != nil {
				c.waiter.Reset()
				c.release(true)
				return c.interrupted(ctx)
			}
			c.watchHead(head)
		}
		c.await(head)
	}
}

// advance steps the queue from head as far as it goes without waiting, and
// returns what is then at its head. nil means that the token is given back: the
// queue is empty, or t, which may be nil, has ended. Called with the token.
func (c *Communicator) advance(head, t *Task) (*Task, bool) {
	moved := false
	for {
		if head == nil {
			c.release(false)
			return nil, moved
		}
		if head.broken {
			return head, moved
		}
		ended, m, err := c.step(head)
		moved = moved || m
		if err != nil {
			head.broken = true
			c.broken(head, err)
			return head, moved
		}
		if !ended {
			return head, moved
		}
		last := head == t
		if head = c.complete(head, nil, last); last || head == nil {
			return nil, true
		}
	}
}

// flush ends everything that is queued with the failure, and gives the token
// back. Called with the token.
func (c *Communicator) flush(head *Task, f *failure) {
	for head != nil {
		c.abandon(head)
		head = c.complete(head, c.taskError(head, f.err), false)
		if head == nil {
			return
		}
	}
	c.release(false)
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
		c.mu.Lock()
		if c.held {
			c.missed = true
			c.mu.Unlock()
			continue
		}
		head := c.head
		c.held = head != nil
		c.mu.Unlock()
		if head != nil {
			// An error here is a failure, which drive has already turned into the end
			// of every operation.
			_ = c.drive(c.life, head, nil, true)
		}
	}
}
