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
	c := op.life.core
	c.mu.Lock()
	if !op.pin(w.gen) {
		c.mu.Unlock()
		return nil
	}
	if op.life.state != opStarted || op.life.startErr != nil {
		return c.settled(op)
	}
	err := c.wait(ctx, op)
	if err == nil {
		c.finished(op)
		c.mu.Unlock()
		return nil
	}
	if ctx.Err() != nil {
		// Either ctx ended or the operation failed at the same moment.
		switch done, failure := c.test(op); {
		case !done:
			op.unpin()
			c.mu.Unlock()
			return c.gaveUp(op, context.Cause(ctx))
		case failure == nil:
			c.finished(op)
			c.mu.Unlock()
			return nil
		default:
			err = failure
		}
	}
	return c.lost(op, err)
}

// wait waits for op, with core.mu held before and after.
func (c *core) wait(ctx context.Context, op *Op) error {
	if c.locked != nil {
		return c.locked.WaitLocked(ctx, op)
	}
	c.mu.Unlock()
	err := c.backend.Wait(ctx, op)
	c.mu.Lock()
	return err
}

// settled is Wait for an operation that there is nothing to wait for: it has
// ended, or cannot be waited for. It gives up the caller's hold and core.mu.
func (c *core) settled(op *Op) error {
	err := op.life.err
	switch {
	case op.life.state == opBuilding:
		err = fmt.Errorf("%w: this operation is part of a Coalesce that is not complete; wait after Coalesce has returned", goccl.ErrInvalid)
	case op.life.state == opStarted:
		return c.lost(op, op.life.startErr)
	}
	op.unpin()
	c.mu.Unlock()
	return err
}

// lost is failed for a caller with core.mu, which it gives up together with the
// caller's hold.
func (c *core) lost(op *Op, err error) error {
	c.mu.Unlock()
	err = c.failed(op, err)
	c.mu.Lock()
	op.unpin()
	c.mu.Unlock()
	return err
}

// Test pushes the operation on and reports whether it has ended, and how. It
// never blocks.
func (w Work) Test() (bool, error) {
	op := w.op
	if op == nil {
		return true, errNoWork
	}
	c := op.life.core
	c.mu.Lock()
	if !op.pin(w.gen) {
		c.mu.Unlock()
		return true, nil
	}
	switch {
	case op.life.state == opBuilding:
		op.unpin()
		c.mu.Unlock()
		return false, nil
	case op.life.state == opEnded, op.life.startErr != nil:
		return true, c.settled(op)
	}
	done, err := c.test(op)
	switch {
	case !done:
		op.unpin()
	case err == nil:
		c.finished(op)
	default:
		return true, c.lost(op, err)
	}
	c.mu.Unlock()
	return done, nil
}

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
	c := op.life.core
	c.mu.Lock()
	if !op.pin(w.gen) {
		c.mu.Unlock()
		return nil
	}
	if op.life.state != opStarted || op.life.startErr != nil {
		return c.settled(op)
	}
	err := j.Join(op, s)
	op.unpin()
	c.mu.Unlock()
	return err
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
	if op == nil {
		return ended
	}
	c := op.life.core
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case op.life.gen != w.gen || op.life.holds == 0 || op.life.state == opEnded:
		return ended
	case op.life.done == nil:
		op.life.done = make(chan struct{})
		if op.life.state != opBuilding {
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
