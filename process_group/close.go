package processgroup

import (
	"context"
	"errors"
	"sync"

	"github.com/goccl/goccl"
)

// closing makes Close happen once; later callers wait for it.
type closing struct {
	once sync.Once
	err  error
}

// Close ends the group on this rank: calls are refused from now on, operations
// under way are waited for, at most for the group's timeout, and the backend is
// closed. It is idempotent and may be called from any goroutine; all callers
// return when it is done. Close when the other ranks do: buffers in shared windows
// are given back together.
func (c *core) Close() error {
	c.closing.once.Do(func() { c.closing.err = c.close() })
	return c.closing.err
}

func (c *core) close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()

	c.drain()
	close(c.watch.stop)
	c.failure.cancel(goccl.ErrClosed)
	c.running.Wait()
	return errors.Join(c.windows.freeAll(), c.backend.Close())
}

// drain waits for what is in flight. When that takes too long the group fails, and
// everything must end at once; a backend that breaks even this is not waited for.
func (c *core) drain() {
	if c.drained() {
		return
	}
	e := goccl.NewError("close", goccl.ErrTimeout)
	e.Group, e.Hint = c.cfg.Name, "an operation did not end; "+c.watch.text()
	c.fail(c.own("gave up closing", e), true)
	c.drained()
}

func (c *core) drained() bool {
	ctx, cancel := context.WithTimeout(context.Background(), c.cfg.Timeout)
	defer cancel()
	for {
		c.mu.Lock()
		op := c.flight.head
		if op == nil {
			c.mu.Unlock()
			return true
		}
		w := Work{op, op.life.gen}
		c.mu.Unlock()
		if err := w.Wait(ctx); err != nil && ctx.Err() != nil {
			return false
		}
	}
}
