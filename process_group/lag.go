package processgroup

import (
	"context"
	"slices"
	"strings"
)

// ask finds out whom op waits for, and says so in the log when it is news.
func (d *watchdog) ask(c *core, op *Op) {
	if c.cfg.Control == nil {
		return
	}
	ctx, cancel := context.WithTimeout(c.failure.ctx, askWithin)
	defer cancel()
	lags := c.cfg.Control.Laggards(ctx, c.awaited(op))
	if op.P2P() {
		lags = slices.DeleteFunc(lags, func(l Lag) bool { return !op.waitsFor(l.Rank) })
	}
	if slices.Equal(lags, d.lagging()) {
		return
	}
	d.set(lags)
	if len(lags) > 0 {
		c.cfg.Logger.Warn("operation is blocked", "group", c.cfg.Name, "rank", c.cfg.Rank,
			"op", op.Name(), "seq", op.Seq, "label", op.Label, "waiting", d.text())
	}
}

// awaited is the collective that all ranks should have begun while op is blocked.
func (c *core) awaited(op *Op) uint64 {
	if !op.P2P() {
		return op.Seq
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last.seq
}

// waitsFor reports whether rank is a peer of a transfer.
func (op *Op) waitsFor(rank int) bool {
	if op.Root == rank {
		return true
	}
	for i := range op.Batch {
		if op.Batch[i].Peer == rank {
			return true
		}
	}
	for _, part := range op.Parts {
		if part.waitsFor(rank) {
			return true
		}
	}
	return false
}

// lagging returns whom the group waits for.
func (d *watchdog) lagging() []Lag {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lags
}

func (d *watchdog) set(lags []Lag) {
	d.mu.Lock()
	d.lags = lags
	d.mu.Unlock()
}

// text says whom the group waits for; empty when that is not known.
func (d *watchdog) text() string {
	var b strings.Builder
	for i, l := range d.lagging() {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(l.String())
	}
	return b.String()
}
