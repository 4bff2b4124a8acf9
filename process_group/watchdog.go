package processgroup

import (
	"fmt"
	"sync"
	"time"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/trace"
)

const (
	tickEvery = 100 * time.Millisecond
	// blockedAfter is how long the oldest operation may take before the group
	// asks who is late.
	blockedAfter = 500 * time.Millisecond
	// askWithin bounds one question to the control plane.
	askWithin = time.Second
	// idleTicks is after how many ticks without work the watchdog goes to sleep: a
	// steady stream of short operations must not wake it each time.
	idleTicks = 10
)

// watchdog looks after the operations that nobody waits for, finds out whom a
// blocked one waits for, and aborts the group at its timeout. It ticks only
// while there is work.
type watchdog struct {
	wake  chan struct{}
	stop  chan struct{}
	every time.Duration // between ticks; set before the first operation
	armed bool          // ticking; core.mu guards it

	asked  uint64 // generation of the operation asked about
	askAt  int64  // when to ask next, nanoseconds after core.base
	dumped bool

	mu   sync.Mutex
	lags []Lag // whom the group waits for; replaced, never changed
}

func (d *watchdog) init() {
	d.wake = make(chan struct{}, 1)
	d.stop = make(chan struct{})
	d.every = tickEvery
}

// arm wakes the watchdog when it sleeps. core.mu is held.
func (d *watchdog) arm() {
	if d.armed {
		return
	}
	d.armed = true
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// run is the watchdog's goroutine.
func (d *watchdog) run(c *core) {
	failed := c.failure.ctx.Done()
	for {
		select {
		case <-d.stop:
			d.lastDump(c)
			return
		case <-failed:
			failed = nil
			d.lastDump(c)
		case <-d.wake:
			if !d.patrol(c) {
				d.lastDump(c)
				return
			}
		}
	}
}

// patrol ticks until there has been no work for a while; false means stop.
func (d *watchdog) patrol(c *core) bool {
	ticker := time.NewTicker(d.every)
	defer ticker.Stop()
	failed := c.failure.ctx.Done()
	for idle := 0; ; {
		select {
		case <-d.stop:
			return false
		case <-failed:
			failed = nil
			d.lastDump(c)
		case <-ticker.C:
			if d.tick(c, c.now()) {
				idle = 0
			} else if idle++; idle >= idleTicks && d.disarm(c) {
				return true
			}
		}
	}
}

// disarm lets the watchdog sleep unless there is work again.
func (d *watchdog) disarm(c *core) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	d.armed = c.flight.head != nil
	return !d.armed
}

// tick settles what has ended and looks at what is oldest. It reports whether
// there is work.
func (d *watchdog) tick(c *core, now int64) bool {
	op, since := d.settle(c)
	if op == nil {
		d.set(nil)
		return false
	}
	defer func() {
		c.mu.Lock()
		op.unpin()
		c.mu.Unlock()
	}()
	gen := op.life.gen // fixed while it is held
	blocked := time.Duration(now - since)
	if blocked < min(blockedAfter, c.cfg.Timeout) || c.cause() != nil {
		return true
	}
	if d.asked != gen || now >= d.askAt {
		d.ask(c, op)
		d.asked = gen
		// Later and later: a long wait must not load the control plane.
		d.askAt = now + int64(max(askWithin, blocked/8))
	}
	if blocked >= c.cfg.Timeout {
		d.timeout(c, op)
	}
	return true
}

// settle ends operations at the front that are over, which also pushes progress,
// and returns the first that is not, held, with the time since when it is at the
// front.
func (d *watchdog) settle(c *core) (*Op, int64) {
	for {
		c.mu.Lock()
		op := c.flight.head
		if op == nil {
			c.mu.Unlock()
			return nil, 0
		}
		op.life.holds++
		since := max(op.life.queued, c.flight.lastEnd)
		done, err := c.test(op)
		switch {
		case !done:
			c.mu.Unlock()
			return op, since
		case err == nil:
			c.finished(op)
			c.mu.Unlock()
		default:
			c.lost(op, err) //nolint:errcheck // it is kept in the Op for its waiters
		}
	}
}

// timeout aborts the group because op was blocked for too long.
func (d *watchdog) timeout(c *core, op *Op) {
	e := goccl.NewError(op.Name(), fmt.Errorf("%w after %v", goccl.ErrTimeout, c.cfg.Timeout))
	// It names no reporter: ranks whose time is up together say the same.
	e.Group, e.Seq = c.cfg.Name, op.Seq
	for _, l := range d.lagging() {
		e.Missing = append(e.Missing, l.Rank)
	}
	switch text := d.text(); {
	case text != "":
		e.Hint = text
	case op.P2P():
		e.Hint = "the peers run, but do not take part"
	default:
		e.Hint = "all ranks have called it, so the data is slow or a link is stuck; a longer Timeout gives it more time"
	}
	if op.P2P() {
		e.Peer = op.Root // -1 for a batch
		e.Hint += "; ranks that each wait for the other to receive first need their transfers in one BatchSendRecv or Coalesce"
	}
	c.fail(e, true)
}

// lastDump writes the flight recorder once when the group has failed, also on the
// ranks that only hear of it.
func (d *watchdog) lastDump(c *core) {
	cause := c.cause()
	if cause == nil || d.dumped || c.cfg.DumpDir == "" {
		return
	}
	d.dumped = true
	path, err := trace.Save(c.cfg.DumpDir, c.Dump(cause.Error()))
	if err != nil {
		c.cfg.Logger.Error("flight recorder not written", "group", c.cfg.Name, "rank", c.cfg.Rank, "err", err)
		return
	}
	c.cfg.Logger.Info("flight recorder written", "group", c.cfg.Name, "rank", c.cfg.Rank, "path", path)
}
