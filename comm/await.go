package comm

import (
	"context"
	"runtime"
	"time"
)

// hotPolls is how often a blocked operation is looked at before anything else is:
// about the time in which a peer that is on its way arrives.
const hotPolls = 32

// await passes a wait for the operation at the head: turn by turn, and at first
// looking at nothing but what the operation waits for. Called with the token.
func (c *Communicator) await(head *Task) {
	c.waiter.Word = head.word()
	c.waiter.Turn()
	if c.turns > 0 || head.Coll == 0 || !head.part.begun {
		return
	}
	r := head.part.run
	for i := 1; i < hotPolls && !r.Unblocked(); i++ {
		c.waiter.Turn()
	}
}

// elbow passes time while another goroutine holds the token. A runner that holds
// it sees that it is wanted.
func (c *Communicator) elbow(ctx context.Context, t *Task) error {
	c.waiters.Add(1)
	defer c.waiters.Add(-1)
	for tries := 0; ; tries++ {
		c.mu.Lock()
		over := t.done || !c.held
		c.mu.Unlock()
		if over {
			return nil
		}
		if tries%16 == 15 && ctx.Err() != nil {
			return c.interrupted(ctx)
		}
		if tries < 200 {
			runtime.Gosched()
		} else {
			time.Sleep(50 * time.Microsecond)
		}
	}
}
