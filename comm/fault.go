package comm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/bootstrap"
	"github.com/goccl/goccl/comm/exec"
	"github.com/goccl/goccl/internal/spin"
)

// causeOf writes err down for the other ranks.
func (c *Communicator) causeOf(err error) bootstrap.Cause {
	return bootstrap.CauseOf(err, c.rank, c.address(c.rank))
}

// Fail tells every rank that this one cannot go on, and why. All operations,
// here and there, end with the same sentence: the first failure of the
// communicator, which is this one unless another rank was faster. It never
// blocks.
func (c *Communicator) Fail(err error) {
	if err == nil || c.failed.Load() != nil {
		return
	}
	if c.session == nil {
		c.adopt(c.causeOf(err).Err(c.rank, c.name, err))
		return
	}
	c.own.CompareAndSwap(nil, &failure{err: err})
	c.session.Fail(c.causeOf(err).Text())
	// The hub decides which failure was first. When it does not answer, this one
	// stands.
	c.spawn(func() {
		t := time.NewTimer(time.Second)
		defer t.Stop()
		select {
		case <-t.C:
			c.adopt(c.causeOf(err).Err(c.rank, c.name, err))
		case <-c.failedC:
		}
	})
}

// Abort ends every operation of all ranks with the cause. It is idempotent and
// never blocks.
func (c *Communicator) Abort(cause error) {
	if cause == nil {
		cause = goccl.ErrAborted
	}
	if !errors.Is(cause, goccl.ErrAborted) {
		cause = fmt.Errorf("%w: %w", goccl.ErrAborted, cause)
	}
	e := goccl.NewError("abort", cause)
	e.Rank, e.Group = c.rank, c.name
	c.Fail(e)
}

// Err returns the failure that ended this communicator, nil while it works.
func (c *Communicator) Err() error {
	if f := c.failed.Load(); f != nil {
		return f.err
	}
	return nil
}

// Failed is closed when the communicator fails.
func (c *Communicator) Failed() <-chan struct{} { return c.failedC }

// adopt makes err the failure of this communicator, unless there is one.
func (c *Communicator) adopt(err error) {
	if !c.failed.CompareAndSwap(nil, &failure{err, time.Now()}) {
		return
	}
	if c.acc != nil {
		c.acc.Abort()
	}
	close(c.failedC)
	c.endLife(err)
	if bell := c.bell.Load(); bell != nil { // a peer may fail while this rank still sets up
		spin.Wake(bell)
	}
	c.nudge()
}

// onEvent hears of the other ranks, in the same order everywhere.
func (c *Communicator) onEvent(e bootstrap.Event) {
	switch e.Kind {
	case bootstrap.Left:
		c.leave(e.Rank)
	case bootstrap.Lost:
		c.adopt(bootstrap.LostCause(e).Err(c.rank, c.name, nil))
	case bootstrap.Failed:
		var own error
		if f := c.own.Load(); f != nil && e.Rank == c.rank {
			own = f.err
		}
		c.adopt(bootstrap.CauseFrom(e.Text, e.Rank).Err(c.rank, c.name, own))
	}
}

// onMessage takes what other ranks ask of this one's control plane.
func (c *Communicator) onMessage(peer int, tag uint64, _ []byte) bool {
	if tag&askHandle == 0 {
		return false
	}
	c.spawn(func() {
		select {
		case <-c.linked:
		case <-c.life.Done():
			return
		}
		if err := c.links.answer(linkFrom(peer, tag)); err != nil && c.life.Err() == nil {
			c.blame(err)
		}
	})
	return true
}

// leave remembers when a rank closed its communicator in good order.
func (c *Communicator) leave(rank int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.left[rank]; !ok {
		c.left[rank] = time.Now()
	}
}

// taskError is what an operation that was ended by a failure returns: the
// failure's own sentence first, then which operation it was.
func (c *Communicator) taskError(t *Task, err error) error {
	op := goccl.NewError(t.Call.describe(), err)
	op.Rank, op.Group, op.Seq = c.rank, c.name, t.Number
	return &ended{cause: err, op: op}
}

type ended struct {
	cause error
	op    *goccl.Error
}

// Error returns the cause, and on a second line the operation.
func (e *ended) Error() string {
	return fmt.Sprintf("%v\n  ended %s #%d on group %q of rank %d", e.cause, e.op.Op, e.op.Seq, e.op.Group, e.op.Rank)
}

// Unwrap returns the cause.
func (e *ended) Unwrap() error { return e.cause }

// broken handles an error of this rank's own part of t. Called with the token.
func (c *Communicator) broken(t *Task, err error) {
	var clash *exec.Clash
	if errors.As(err, &clash) && c.session != nil {
		q := question{seq: t.seq, sig: t.sig, text: t.Call.describe(), number: t.Number, peer: clash.Peer, peerSig: clash.Sig}
		c.spawn(func() { c.explain(q) })
		return
	}
	e := goccl.NewError(t.Call.describe(), err)
	e.Rank, e.Group, e.Seq = c.rank, c.name, t.Number
	c.blame(e)
}

// blame fails with err, unless it tells of a connection that broke or could not be
// made: the peer behind that may have died, which the hub says better.
func (c *Communicator) blame(err error) {
	for _, mine := range []error{goccl.ErrInvalid, goccl.ErrUnsupported, goccl.ErrMismatch} {
		if errors.Is(err, mine) {
			c.Fail(err)
			return
		}
	}
	c.adoptLater(err)
}

// spawn runs f in a goroutine that Close waits for; after Close it does not.
func (c *Communicator) spawn(f func()) {
	c.owned.mu.Lock()
	defer c.owned.mu.Unlock()
	if !c.owned.over {
		c.owned.running.Go(f)
	}
}

// owned are the goroutines of a communicator besides the runner.
type owned struct {
	mu      sync.Mutex
	over    bool
	running sync.WaitGroup
}

// wait ends the spawning and waits for what runs.
func (o *owned) wait() {
	o.mu.Lock()
	o.over = true
	o.mu.Unlock()
	o.running.Wait()
}

// OnFailure calls f with the failure of this communicator, once, from a
// goroutine of its own: at once when it has failed already.
func (c *Communicator) OnFailure(f func(cause error)) {
	c.spawn(func() {
		<-c.failedC
		if err := c.Err(); !errors.Is(err, goccl.ErrClosed) {
			f(err)
		}
	})
}

// MonitoredBarrier waits for all ranks through the control plane. When ctx ends
// first, every rank that came learns all ranks that did not.
func (c *Communicator) MonitoredBarrier(ctx context.Context) (missing []int, err error) {
	if c.session == nil {
		return nil, ctx.Err()
	}
	return c.session.MonitoredBarrier(ctx)
}
