package processgroup

import "time"

// Health is what a liveness probe wants to know.
type Health struct {
	InFlight      int           // operations that have not ended
	SinceProgress time.Duration // since the last one ended or, with none before it, the oldest began to wait; 0 with none in flight
	LastSeq       uint64        // the last collective called
	Waiting       []Lag         // whom the group waits for, once that is known
	Err           error         // why the group failed
}

// Health returns the state of the group. It never blocks on other ranks.
func (c *core) Health() Health {
	h := Health{Err: c.cause(), Waiting: c.watch.lagging()}
	c.mu.Lock()
	defer c.mu.Unlock()
	h.InFlight, h.LastSeq = c.flight.n, c.last.seq
	if op := c.flight.head; op != nil {
		h.SinceProgress = time.Duration(c.now() - max(op.life.queued, c.flight.lastEnd))
	}
	return h
}
