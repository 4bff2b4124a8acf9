package comm

import (
	"context"
	"sync/atomic"

	"github.com/goccl/goccl/comm/exec"
	"github.com/goccl/goccl/comm/plan"
	"github.com/goccl/goccl/comm/plan/algo"
)

// binding builds a Program and connects it. That waits for peers, so a goroutine
// does it, and whoever holds the token goes on looking at contexts, failures and
// the clock: a peer that is stopped must not stop this rank.
type binding struct {
	done  atomic.Bool
	bound *exec.Bound
	err   error
}

// bind gives p its Program; false as long as it is being connected. Called with
// the token held.
func (c *Communicator) bind(p *part) (bool, error) {
	if p.binding == nil {
		c.mu.Lock()
		p.bound = c.programs[p.key]
		c.mu.Unlock()
		if p.bound != nil {
			return true, nil
		}
		b, key := new(binding), p.key
		p.binding = b
		c.spawn(func() {
			b.bound, b.err = c.connect(key)
			b.done.Store(true)
			c.nudge()
		})
	}
	if !p.binding.done.Load() {
		return false, nil
	}
	b := p.binding
	p.bound, p.binding = b.bound, nil
	return b.err == nil, b.err
}

// connect builds the Program of key on its connections. One at a time: two
// Programs may want the same connection.
func (c *Communicator) connect(key plan.Key) (*exec.Bound, error) {
	c.binds.Lock()
	defer c.binds.Unlock()
	c.mu.Lock()
	bound := c.programs[key]
	c.mu.Unlock()
	if bound != nil {
		return bound, nil
	}
	if err := context.Cause(c.life); err != nil {
		return nil, err
	}
	prog, err := algo.Build(key, c.rank, c.graph)
	if err != nil {
		return nil, err
	}
	if bound, err = exec.Bind(prog, c.links); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.programs[key] = bound
	return bound, nil
}
