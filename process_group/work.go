package processgroup

import (
	"context"
	"errors"
	"fmt"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
)

// Work is an operation under way, or a refusal. It is a value: copy it, drop it,
// use it from several goroutines, keep it after the end. A Work whose operation
// ended long ago says so, and never speaks for another operation.
type Work struct {
	op  *Op
	gen uint64
}

var errNoWork = fmt.Errorf("%w: this Work is zero, no operation stands behind it", goccl.ErrInvalid)

// Wait helps the operation and returns when it has ended: nil, or why it failed.
// ctx bounds the waiting only: when it ends before, Wait returns an error that
// wraps context.Cause(ctx), and the operation goes on.
func (w Work) Wait(ctx context.Context) error {
	op := w.op
	if op == nil {
		return errNoWork
	}
	if !op.pin(w.gen) {
		return nil
	}
	c := op.life.core
	if err, over := op.over(); over {
		op.unpin()
		return err
	}
	err := c.backend.Wait(ctx, op)
	if err == nil {
		c.finished(op)
		return nil
	}
	defer op.unpin()
	if ctx.Err() != nil {
		// Either ctx ended or the operation failed at the same moment.
		switch done, failure := c.backend.Test(op); {
		case !done:
			return c.gaveUp(op, context.Cause(ctx))
		case failure == nil:
			op.pinAgain()
			c.finished(op)
			return nil
		default:
			err = failure
		}
	}
	return c.failed(op, err)
}

// Test pushes the operation on and reports whether it has ended, and how. It
// never blocks.
func (w Work) Test() (bool, error) {
	op := w.op
	if op == nil {
		return true, errNoWork
	}
	if !op.pin(w.gen) {
		return true, nil
	}
	c := op.life.core
	if op.where() < opStarted {
		op.unpin()
		return false, nil
	}
	if err, over := op.over(); over {
		op.unpin()
		return true, err
	}
	done, err := c.backend.Test(op)
	switch {
	case !done:
		op.unpin()
		return false, nil
	case err == nil:
		c.finished(op)
		return true, nil
	}
	defer op.unpin()
	return true, c.failed(op, err)
}

// over reports whether there is nothing to wait for: the operation has ended, or
// it cannot be waited for. The caller holds op.
func (op *Op) over() (err error, over bool) {
	switch op.where() {
	case opEnded:
		return op.life.err, true
	case opBuilding:
		return fmt.Errorf("%w: this operation is part of a Coalesce that is not complete; wait after Coalesce has returned", goccl.ErrInvalid), true
	case opStarting: // another goroutine is in Coalesce; it holds the lock until the start is over
		op.life.core.mu.Lock()
		op.life.core.mu.Unlock() //nolint:staticcheck // only the wait is wanted
	}
	if err := op.life.startErr; err != nil {
		return op.life.core.failed(op, err), true
	}
	return nil, false
}

// pinAgain adds a hold for a caller that has one.
func (op *Op) pinAgain() { op.life.word.Add(1) }

// gaveUp is the error of a Wait that ended before its operation.
func (c *core) gaveUp(op *Op, why error) error {
	e := goccl.NewError(op.Name(), why)
	e.Group, e.Seq, e.Rank = c.cfg.Name, op.Seq, c.cfg.Rank
	e.Hint = "the operation goes on"
	if text := c.watch.text(); text != "" {
		e.Hint = text + "; the operation goes on"
	}
	return e
}

// Join makes s wait for the operation; the host does not. It needs a backend that
// runs operations on a device, and returns goccl.ErrUnsupported otherwise.
func (w Work) Join(s device.Stream) error {
	op := w.op
	switch {
	case op == nil:
		return errNoWork
	case s == nil:
		return fmt.Errorf("%w: Join needs a stream; use Wait on the host", goccl.ErrInvalid)
	}
	j, ok := op.life.core.backend.(Joiner)
	if !ok {
		return fmt.Errorf("%w: backend %s runs on the host, so no stream can wait for it; use Wait", goccl.ErrUnsupported, op.life.core.backend.Name())
	}
	if !op.pin(w.gen) {
		return nil
	}
	defer op.unpin()
	if err, over := op.over(); over {
		return err
	}
	return j.Join(op, s)
}

// ended is the channel of all operations that were over when Done was called.
var ended = func() chan struct{} {
	ch := make(chan struct{})
	close(ch)
	return ch
}()

// Done returns a channel that is closed when the operation has ended. The first
// call for an operation makes the channel and a goroutine: of all methods it is
// the one that allocates.
func (w Work) Done() <-chan struct{} {
	op := w.op
	if op == nil || !op.pin(w.gen) {
		return ended
	}
	defer op.unpin()
	c := op.life.core
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case op.where() == opEnded:
		return ended
	case op.life.done == nil:
		op.life.done = make(chan struct{})
		if op.where() != opBuilding {
			c.follow(w)
		}
	}
	return op.life.done
}

// follow waits for w in a goroutine of the group, so that its channel is closed
// whoever else waits. It ends at the latest when the group aborts at its timeout.
func (c *core) follow(w Work) {
	c.running.Add(1)
	go func() {
		defer c.running.Done()
		// How it ended is kept in the Op; the channel says only that it did.
		_ = w.Wait(context.Background())
	}()
}

// WaitAll waits for all of ws and joins their failures. When ctx ends it still
// asks every one.
func WaitAll(ctx context.Context, ws ...Work) error {
	var errs []error
	for _, w := range ws {
		if err := w.Wait(ctx); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
