package processgroup

import (
	"fmt"

	"github.com/goccl/goccl"
)

// call begins a collective or a transfer. It returns a clean Op with core.mu held,
// to be passed to launch; or nil and the Work to return, when the group takes no
// more operations.
func (g *Group) call(coll goccl.Collective, s *settings) (*Op, Work) {
	c := g.core
	c.mu.Lock()
	if c.crowded() {
		c.sweep()
	}
	if c.closed || c.failure.first.Load() != nil {
		c.mu.Unlock()
		return nil, c.tooLate(coll)
	}
	return c.take(coll, s), Work{}
}

// launch numbers op, records it and starts it, all under core.mu, which it
// releases: so the numbers, the recorder and the backend have one order.
func (c *core) launch(op *Op) Work {
	if c.open != nil {
		w := c.open.add(c, op)
		c.mu.Unlock()
		return w
	}
	w := c.start(op)
	c.mu.Unlock()
	return w
}

// start is launch for an operation that stands alone. core.mu is held. Writing it
// down comes last: by then the data is under way.
func (c *core) start(op *Op) Work {
	w := Work{op: op, gen: op.life.gen}
	c.number(op)
	// An error is for the waiter to report: telling the peers needs core.mu free.
	if c.locked != nil {
		op.life.startErr = c.locked.StartLocked(op)
	} else {
		op.life.startErr = c.backend.Start(op)
	}
	op.life.state = opStarted
	op.life.queued = c.now()
	c.rec.queue(op)
	c.flight.push(op)
	c.watch.arm()
	return w
}

// number gives op its sequence number. core.mu is held.
func (c *core) number(op *Op) {
	if op.P2P() {
		c.last.p2pSeq++
		op.Seq = c.last.p2pSeq
		return
	}
	c.last.seq++
	op.Seq = c.last.seq
}

// refuse answers a wrong call: the Work holds the error, the call takes its
// sequence number as a tombstone, and all ranks fail with the same sentence.
// Within Coalesce it is the whole that is refused, when it is complete.
func (g *Group) refuse(coll goccl.Collective, s *settings, err error) Work {
	c := g.core
	op, w := g.call(coll, s)
	if op == nil {
		return w
	}
	return c.reject(op, err)
}

// Refuse answers a call that a skin of Group cannot turn into one of its methods,
// such as a tensor that is no contiguous memory: the Work holds err, the call
// takes its place in the order, and all ranks fail with the same sentence, as for
// any wrong call.
func (g *Group) Refuse(coll goccl.Collective, err error, o ...Option) Work {
	s := g.settings(o)
	return g.refuse(coll, &s, err)
}

// reject is refuse for a call that has its Op. It releases core.mu.
func (c *core) reject(op *Op, err error) Work {
	if c.open != nil {
		w := c.open.poison(err)
		c.recycle(op)
		c.mu.Unlock()
		return w
	}
	return c.bury(op, err)
}

// bury ends op, which was never started, as a refused call. It releases core.mu.
func (c *core) bury(op *Op, err error) Work {
	w := Work{op: op, gen: op.life.gen}
	c.number(op)
	op.life.queued = c.now()
	c.rec.refuse(op)
	c.mu.Unlock()

	cause := c.fail(c.own(fmt.Sprintf("refused its %s #%d on group %q", op.Name(), op.Seq, c.cfg.Name), err), true)

	c.mu.Lock()
	op.end(c.opError(op, cause))
	c.mu.Unlock()
	return w
}

// nothing ends op, which has nothing to do, without a sequence number. It releases
// core.mu.
func (c *core) nothing(op *Op) Work {
	w := Work{op: op, gen: op.life.gen}
	op.end(nil)
	c.drop(op, 1)
	c.mu.Unlock()
	return w
}

// tooLate is the Work of a call on a group that is closed or has failed.
func (c *core) tooLate(coll goccl.Collective) Work {
	op := &Op{Coll: coll, Root: -1}
	op.life.core, op.life.holds = c, 1
	op.life.err = c.lateError(op)
	op.life.state = opEnded
	return Work{op: op}
}

// lateError says why the group takes no more operations.
func (c *core) lateError(op *Op) error {
	if cause := c.cause(); cause != nil {
		return c.opError(op, cause)
	}
	e := goccl.NewError(op.Name(), goccl.ErrClosed)
	e.Group, e.Rank = c.cfg.Name, c.cfg.Rank
	return e
}

// finished notes that op has ended well and gives up the caller's hold. core.mu is
// held.
func (c *core) finished(op *Op) {
	holds := 1
	if op.life.state != opEnded {
		c.markEnded(op, nil)
		holds = 2 // the group's own
	}
	c.drop(op, holds)
}

// failed notes that op has ended with err, tells everyone, and returns what its
// waiters see. The group keeps its hold, so that the Op is never used again and
// every handle finds the error. The caller holds op and, as telling takes time,
// not core.mu.
func (c *core) failed(op *Op, err error) error {
	cause := c.fail(err, true)
	c.mu.Lock()
	defer c.mu.Unlock()
	if op.life.state != opEnded {
		c.markEnded(op, c.opError(op, cause))
	}
	return op.life.err
}

// markEnded records the end of op. core.mu is held.
func (c *core) markEnded(op *Op, err error) {
	now := c.now()
	c.flight.remove(op)
	c.flight.lastEnd = now
	c.rec.end(op, now, err)
	op.end(err)
}

// end makes op ended for its waiters. core.mu is held.
func (op *Op) end(err error) {
	op.life.err = err
	if op.life.done != nil {
		close(op.life.done)
	}
	op.life.state = opEnded
}
