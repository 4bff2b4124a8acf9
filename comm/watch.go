package comm

import (
	"context"
	"fmt"
	"time"

	"github.com/goccl/goccl"
)

// watch is how long the operation at the head has not moved. It belongs to the
// token's holder.
type watch struct {
	since time.Time // first look at this wait; zero: not looked yet
	last  time.Time
	asked int
	over  bool // it was given up
}

// Looks at a blocked operation: links every lookEvery, questions to the other
// ranks after askAfter and then at growing distances.
const (
	lookEvery = 10 * time.Millisecond
	askAfter  = 200 * time.Millisecond
	leftGrace = time.Second // what a rank sent before it closed may still be on its way
)

// watchHead looks after an operation that is blocked: a broken link, a rank that
// has left, a disagreement, the timeout. Called with the token, every few turns
// of a wait; it reads the clock only when the wait has become long.
func (c *Communicator) watchHead(t *Task) {
	if c.turns >= 64 && !t.broken && c.look(t, &c.watch) {
		t.broken = true
	}
}

// look is what is done now and then about an operation that is blocked, since the
// first look. true: it was given up, and the failure is on its way.
func (c *Communicator) look(t *Task, w *watch) bool {
	if c.session == nil || w.over {
		return false
	}
	at := time.Now()
	if w.since.IsZero() {
		w.since, w.last = at, at
		return false
	}
	if at.Sub(w.last) < lookEvery {
		return false
	}
	w.last = at
	if err := c.links.err(); err != nil {
		c.adoptLater(err)
		return false
	}
	if err := c.leftBehind(at, w.since); err != nil {
		w.over = true
		c.Fail(err)
		return true
	}
	blocked := at.Sub(w.since)
	if !c.noTimeout && blocked > c.timeout {
		w.over = true
		q := c.question(t)
		c.spawn(func() { c.expire(q) })
		return true
	}
	if blocked >= askAfter<<(2*w.asked) && c.asking.CompareAndSwap(false, true) {
		w.asked++
		q := c.question(t)
		c.spawn(func() {
			defer c.asking.Store(false)
			if err := c.disagreement(q, c.ask(c.life)); err != nil {
				c.Fail(err)
			}
		})
	}
	return false
}

func (c *Communicator) question(t *Task) question {
	return question{seq: t.seq, sig: t.sig, text: t.Call.describe(), number: t.Number, peer: -1}
}

// adoptLater reports a broken link, but gives the hub a moment to say first that
// the peer behind it has died, which is the better sentence.
func (c *Communicator) adoptLater(err error) {
	if !c.linkDown.CompareAndSwap(false, true) {
		return
	}
	c.spawn(func() {
		t := time.NewTimer(500 * time.Millisecond)
		defer t.Stop()
		select {
		case <-t.C:
			c.Fail(err)
		case <-c.failedC:
		}
	})
}

// leftBehind returns an error when a rank closed its communicator and this
// operation has not moved since.
func (c *Communicator) leftBehind(at, blocked time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for r, when := range c.left {
		if at.Sub(when) > leftGrace && at.Sub(blocked) > leftGrace {
			e := goccl.NewError("", goccl.ErrPeerLost)
			e.Rank, e.Peer, e.PeerAddr, e.Group = c.rank, r, c.address(r), c.name
			e.Hint = "it closed its communicator; close only after the last operation of all ranks"
			return e
		}
	}
	return nil
}

// expire ends an operation that has reached its timeout, naming who is missing.
func (c *Communicator) expire(q question) {
	reports := c.ask(c.life)
	if err := c.disagreement(q, reports); err != nil {
		c.Fail(err)
		return
	}
	e := goccl.NewError(q.text, fmt.Errorf("%w after %v", goccl.ErrTimeout, c.timeout))
	e.Rank, e.Group, e.Seq = c.rank, c.name, q.number
	for r := range c.size {
		rep, ok := reports[r]
		if r != c.rank && (!ok || q.seq > 0 && rep.Seq < q.seq) {
			e.Missing = append(e.Missing, r)
		}
	}
	e.Hint = "find out what the missing ranks are doing"
	if q.seq == 0 {
		e.Hint = "a send and a receive that wait for each other belong in one batch"
	}
	c.Fail(e)
}

// interrupted is the error of a wait that its context ended.
func (c *Communicator) interrupted(ctx context.Context) error {
	e := goccl.NewError("wait", context.Cause(ctx))
	e.Rank, e.Group = c.rank, c.name
	e.Hint = "the operation goes on; wait again or abort"
	return e
}
