package comm

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/exec"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/internal/spin"
)

// engine runs the operations of one communicator in order. Whoever holds the
// token steps them: a caller inside Start (small operations), a caller inside
// Wait or Test, or the runner, the communicator's own goroutine, which gives way
// to callers.
//
// The token is a field under the queue's lock, not a lock of its own: taking it,
// finding the head of the queue and popping it are then one short section. The
// first step of a small operation needs no token: it is made with the lock held.
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
type failure struct {
	err error
	at  time.Time // when this rank learned of it
}

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
// the head. The token goes back when nothing is left. Called with the token.
func (c *Communicator) complete(t *Task, err error) (next *Task) {
	t.over(err)
	c.watch = watch{}
	c.waiter.Reset()
	c.mu.Lock()
	if next = c.pop(t); next == nil {
		c.held, c.missed = false, false
	}
	c.mu.Unlock()
	return next
}

// completeLast ends t well for the caller that waits for it, gives the token back,
// wakes the runner for what is left, and leaves mu locked. Called with the token.
func (c *Communicator) completeLast(t *Task) {
	t.over(nil)
	c.watch = watch{}
	c.waiter.Reset()
	c.mu.Lock()
	if c.pop(t) != nil {
		c.nudge()
	}
	c.held, c.missed = false, false
}

// pop takes t, which has ended, off the head of the queue and returns the next.
// Called with mu held.
func (e *engine) pop(t *Task) *Task {
	t.done = true
	if e.head = t.next; e.head == nil {
		e.tail = nil
	}
	return e.head
}

// nudge wakes the runner.
func (e *engine) nudge() {
	select {
	case e.kick <- struct{}{}:
	default:
	}
}

// Lock returns the lock of the queue. Who keeps order of its own over the calls on
// a communicator may use it for that, and call StartLocked, TestLocked and
// WaitLocked: then a small operation takes one lock instead of two.
func (c *Communicator) Lock() *sync.Mutex { return &c.mu }

// Start queues the operation in t and posts what it can. It never waits for a
// peer. An error refuses the call: nothing was queued, and no peer knows of it.
func (c *Communicator) Start(t *Task) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.StartLocked(t)
}

// StartLocked is Start for a caller that holds Lock.
func (c *Communicator) StartLocked(t *Task) error {
	if !t.Checked {
		if err := t.Call.check(c.rank, c.size); err != nil {
			return err
		}
		if t.away = t.kind() != device.Host; t.away {
			return c.startOnDevice(t)
		}
	}
	if err := c.admit(t); err != nil {
		return err
	}
	if c.head == t && !c.held && t.Coll != 0 && t.part.bound != nil && t.part.args.Unit <= eagerBytes {
		c.eager(t)
		return nil
	}
	c.note(t)
	c.nudge()
	return nil
}

// eager makes the first step of t, a small operation at the head of the queue with
// the token free, and writes it down while its data is on its way. Called with mu
// held: what it costs is mostly locked instructions, so it does without the token.
func (c *Communicator) eager(t *Task) {
	ended, _, err := c.stepPart(&t.part)
	c.note(t)
	switch {
	case err != nil:
		t.broken = true
		c.mu.Unlock()
		c.broken(t, err)
		c.mu.Lock()
		c.nudge() // the runner waits for what comes of it
	case ended:
		t.over(nil)
		c.pop(t)
	case !t.part.run.Posted():
		c.nudge()
	}
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
	t.err, t.broken, t.done, t.away = nil, false, false, false
	c.push(t)
	return nil
}

// note writes down an operation that was admitted: for later signatures, for the
// caller, and for messages. It comes after the data is on its way where that can
// be. Called with mu held.
func (c *Communicator) note(t *Task) {
	c.remember(t)
	if t.Coll == 0 { // a batch is made of transfers, or of several choices
		t.Algo, t.Proto, t.Channels = goccl.Direct, goccl.AutoProto, 1
	} else {
		t.Algo, t.Proto, t.Channels = t.part.key.Algo, t.part.key.Proto, int(t.part.key.Channels)
	}
	c.calls.add(t)
}

// Test reports whether t has ended. It never blocks and pushes operations on.
func (c *Communicator) Test(t *Task) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.TestLocked(t)
}

// TestLocked is Test for a caller that holds Lock, which it may give up meanwhile.
func (c *Communicator) TestLocked(t *Task) (bool, error) {
	if t.away {
		return c.testOnDevice(t)
	}
	if !t.done && !c.held {
		c.held = true
		head := c.head
		c.mu.Unlock()
		c.pushOn(head)
		c.mu.Lock()
	}
	if !t.done { // err may be being written
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
	if head, _, _ = c.advance(head, nil); head != nil {
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
	c.mu.Lock()
	defer c.mu.Unlock()
	err = c.WaitLocked(ctx, t)
	return err, t.done
}

// WaitLocked is Wait for a caller that holds Lock, which it gives up while it waits
// and has again when it returns.
func (c *Communicator) WaitLocked(ctx context.Context, t *Task) error {
	if t.away {
		return c.waitOnDevice(ctx, t)
	}
	for !t.done {
		if c.held {
			c.mu.Unlock()
			err := c.elbow(ctx, t)
			c.mu.Lock()
			if err != nil {
				return err
			}
			continue
		}
		c.held = true
		head := c.head
		c.mu.Unlock()
		locked, err := c.drive(ctx, head, t)
		if !locked {
			c.mu.Lock()
		}
		if err != nil {
			c.nudge() // whoever gave way to this caller goes on
			return err
		}
	}
	return t.err
}

// drive steps operations from head until t has ended, or the queue is empty when
// t is nil: then the caller is the runner, which also returns when another caller
// wants the token. Called with the token, which it gives back. locked says that t
// has just ended and mu is still held.
func (c *Communicator) drive(ctx context.Context, head, t *Task) (locked bool, err error) {
	c.waiter.Reset()
	for c.turns = 0; ; c.turns++ {
		if f := c.failed.Load(); f != nil {
			c.flush(head, f)
			return false, nil
		}
		var moved bool
		if head, moved, locked = c.advance(head, t); head == nil {
			return locked, nil
		}
		if moved {
			c.waiter.Reset()
			continue
		}
		if t == nil && c.waiters.Load() > 0 {
			c.waiter.Reset()
			c.release(false) // the caller that waits for it goes on
			return false, nil
		}
		if c.turns%16 == 15 {
			if ctx.Err() != nil {
				c.waiter.Reset()
				c.release(true)
				return false, c.interrupted(ctx)
			}
			c.watchHead(head)
		}
		c.await(head)
	}
}

// advance steps the queue from head as far as it goes without waiting, and
// returns what is then at its head. nil means that the token is given back: the
// queue is empty, or t, which may be nil, has ended; in the latter case mu is still
// held. Called with the token.
func (c *Communicator) advance(head, t *Task) (next *Task, moved, locked bool) {
	for {
		if head == nil {
			c.release(false)
			return nil, moved, false
		}
		if head.broken {
			return head, moved, false
		}
		ended, m, err := c.step(head)
		moved = moved || m
		if err != nil {
			head.broken = true
			c.broken(head, err)
			return head, moved, false
		}
		if !ended {
			return head, moved, false
		}
		if head == t {
			c.completeLast(t)
			return nil, true, true
		}
		if head = c.complete(head, nil); head == nil {
			return nil, true, false
		}
	}
}

// flush ends everything that is queued with the failure, and gives the token
// back. Called with the token.
func (c *Communicator) flush(head *Task, f *failure) {
	for head != nil {
		c.abandon(head)
		head = c.complete(head, c.taskError(head, f.err))
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
			_, _ = c.drive(c.life, head, nil)
		}
	}
}
