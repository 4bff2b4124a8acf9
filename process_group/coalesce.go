package processgroup

import (
	"errors"
	"fmt"

	"github.com/goccl/goccl"
)

// batch is a Coalesce under way. core.mu guards it.
type batch struct {
	op    *Op
	gen   uint64
	depth int
	err   error // first refusal in it
}

// Coalesce makes one operation of all calls on the group within fn: none of them
// waits for another, they start when fn returns, and they end together. The Works
// of the calls and the one that Coalesce returns are the same; waiting within fn
// is refused.
//
// fn must not block on other ranks. While it runs, a call on the group from
// another goroutine becomes a part too, so goroutines that share a group keep
// others out by a lock of their own. A Coalesce within fn adds to the outer one.
// Calls of the same collective must stand in the same order on all ranks.
//
// When fn returns an error or a call in it is refused, nothing starts and all
// ranks fail with that text. Without calls the Work has ended at once.
func (g *Group) Coalesce(fn func() error) Work {
	c := g.core
	s := g.settings(nil)
	op, w := g.call(goccl.SendRecv, &s)
	if op == nil {
		return w
	}
	if b := c.open; b != nil {
		c.recycle(op)
		b.depth++
		c.mu.Unlock()
		return b.nested(c, fn)
	}
	c.open = &batch{op: op, gen: op.life.gen}
	c.mu.Unlock()

	returned := false
	defer func() {
		if !returned { // fn panicked: the group must not stay open
			g.complete(errors.New("the function given to Coalesce panicked"))
		}
	}()
	err := fn()
	returned = true
	return g.complete(err)
}

// nested runs fn as a part of b.
func (b *batch) nested(c *core, fn func() error) Work {
	err := fn()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == b { // else the outer one returned before, which it reports
		b.depth--
		b.note(err)
	}
	return Work{b.op, b.gen}
}

// complete starts what was collected.
func (g *Group) complete(err error) Work {
	c := g.core
	c.mu.Lock()
	b := c.open
	b.note(err)
	if b.depth != 0 {
		b.note(fmt.Errorf("%w: a Coalesce within it has not returned", goccl.ErrInvalid))
	}
	c.open = nil
	op := b.op
	if b.err == nil && len(op.Parts) == 0 {
		b.err = c.checkSelf(op.Batch)
	}
	switch {
	case b.err != nil:
		return c.bury(op, b.err)
	case c.failure.first.Load() != nil || c.closed:
		op.end(c.lateError(op))
		c.mu.Unlock()
		return Work{op, b.gen}
	case len(op.Parts) == 0 && len(op.Batch) == 0:
		return c.nothing(op)
	}
	w := c.start(op)
	if op.life.done != nil {
		c.follow(w)
	}
	c.mu.Unlock()
	return w
}

// note keeps the first error.
func (b *batch) note(err error) {
	if b.err == nil {
		b.err = err
	}
}

// poison notes a refused call; its Work is that of the whole.
func (b *batch) poison(err error) Work {
	b.note(err)
	return Work{b.op, b.gen}
}

// add takes op as a part. Plain transfers are kept as a batch as long as there
// is nothing else, so that thousands of them need one Op. core.mu is held.
func (b *batch) add(c *core, op *Op) Work {
	whole := b.op
	w := Work{whole, b.gen}
	plain := op.Coll == goccl.SendRecv && op.Root >= 0 && op.Tag == 0 && op.Stream == whole.Stream
	switch {
	case op.P2P() && op.Root < 0 && len(op.Batch) == 0: // nothing to send or receive
		c.recycle(op)
	case len(whole.Parts) > 0:
		b.part(op)
	case plain && op.Send:
		whole.Batch = append(whole.Batch, P2P{Buf: op.Src, Peer: op.Root})
		c.recycle(op)
	case plain:
		whole.Batch = append(whole.Batch, P2P{Buf: op.Dst, Peer: op.Root, Recv: true})
		c.recycle(op)
	case len(op.Batch) > 0 && op.Stream == whole.Stream:
		whole.Batch = append(whole.Batch, op.Batch...)
		c.recycle(op)
	default:
		if len(whole.Batch) > 0 {
			s := settings{stream: whole.Stream, label: whole.Label}
			first := c.take(goccl.SendRecv, &s)
			first.Batch = append(first.Batch, whole.Batch...)
			whole.Batch = empty(whole.Batch)
			b.part(first)
		}
		b.part(op)
	}
	return w
}

// part appends op. The whole is a collective as soon as one part is.
func (b *batch) part(op *Op) {
	whole := b.op
	if !op.P2P() && whole.P2P() {
		whole.Coll = op.Coll
	}
	whole.Parts = append(whole.Parts, op)
}
