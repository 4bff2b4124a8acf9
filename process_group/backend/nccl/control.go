package nccl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/bootstrap"
	processgroup "github.com/goccl/goccl/process_group"
	"github.com/goccl/goccl/trace"
)

// verdictWithin is how long a rank that fails waits for the hub to say which
// failure was the first.
const verdictWithin = time.Second

// control is the control plane of a group on NCCL: a session of our own beside
// NCCL's connections, over which ranks tell each other of failures, are asked what
// they do, and exchange small things. NCCL alone would let a rank wait for ever for
// one that is gone.
type control struct {
	who     member
	log     *callLog
	session *bootstrap.Session // nil in a group of one
	stage   atomic.Int32       // how far the forming of the communicator is

	first   atomic.Pointer[failure]
	failed  chan struct{} // closed with first
	own     atomic.Pointer[failure]
	over    chan struct{} // closed by close
	once    sync.Once
	running sync.WaitGroup
	mu      sync.Mutex // guards closed
	closed  bool
}

var (
	_ processgroup.Control = (*control)(nil)
	_ processgroup.Referee = (*control)(nil)
)

func newControl(who member, log *callLog) *control {
	return &control{who: who, log: log, failed: make(chan struct{}), over: make(chan struct{})}
}

// spawn runs f in a goroutine that close waits for; after close it does not.
func (c *control) spawn(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.running.Go(f)
	}
}

// Fail implements processgroup.Control.
func (c *control) Fail(err error) {
	if err == nil || c.first.Load() != nil {
		return
	}
	k := bootstrap.CauseOf(err, c.who.rank, c.address(c.who.rank))
	if c.session == nil {
		c.adopt(k.Err(c.who.rank, c.who.group, err))
		return
	}
	c.own.CompareAndSwap(nil, &failure{err})
	c.session.Fail(k.Text())
	c.spawn(func() {
		t := time.NewTimer(verdictWithin)
		defer t.Stop()
		select {
		case <-t.C: // the hub does not answer, so this one stands
			c.adopt(k.Err(c.who.rank, c.who.group, err))
		case <-c.failed:
		case <-c.over:
		}
	})
}

// Decide implements processgroup.Referee.
func (c *control) Decide(err error) error {
	c.Fail(err)
	select {
	case <-c.failed:
		return c.first.Load().err
	case <-c.over:
		return err
	}
}

// OnFailure implements processgroup.Control.
func (c *control) OnFailure(f func(error)) {
	c.spawn(func() {
		select {
		case <-c.failed:
			f(c.first.Load().err)
		case <-c.over:
		}
	})
}

// adopt makes err the failure of the group on this rank, unless there is one.
func (c *control) adopt(err error) {
	if c.first.CompareAndSwap(nil, &failure{err}) {
		close(c.failed)
	}
}

// event hears of the other ranks, in the same order everywhere.
func (c *control) event(e bootstrap.Event) {
	switch e.Kind {
	case bootstrap.Lost:
		c.adopt(bootstrap.LostCause(e).Err(c.who.rank, c.who.group, nil))
	case bootstrap.Failed:
		var own error
		if f := c.own.Load(); f != nil && e.Rank == c.who.rank {
			own = f.err
		}
		c.adopt(bootstrap.CauseFrom(e.Text, e.Rank).Err(c.who.rank, c.who.group, own))
	case bootstrap.Left: // in good order
	}
}

// MonitoredBarrier implements processgroup.Control.
func (c *control) MonitoredBarrier(ctx context.Context) ([]int, error) {
	if c.session == nil {
		return nil, ctx.Err()
	}
	return c.session.MonitoredBarrier(ctx)
}

// Laggards implements processgroup.Control.
func (c *control) Laggards(ctx context.Context, seq uint64) []processgroup.Lag {
	if c.session == nil {
		return nil
	}
	reports := c.ask(ctx)
	var lags []processgroup.Lag
	for _, p := range c.session.Peers() {
		r, answered := reports[p.Rank]
		if p.Rank == c.who.rank || answered && r.Seq >= seq {
			continue
		}
		l := processgroup.Lag{Rank: p.Rank, Host: p.Host, PID: p.PID, Seq: r.Seq, State: trace.Running}
		if n := len(r.Calls); n > 0 {
			l.What = r.Calls[n-1].Text
		}
		if !answered {
			l.State = trace.NoAnswer
		}
		lags = append(lags, l)
	}
	return lags
}

// ask collects what the ranks say of themselves, those that answer within ctx.
func (c *control) ask(ctx context.Context) map[int]report {
	out := map[int]report{}
	for rank, b := range c.session.Query(ctx) {
		if r, ok := readReport(b); ok {
			out[rank] = r
		}
	}
	return out
}

// exchange gives every rank's data, at most 1 MiB, to all, by rank.
func (c *control) exchange(ctx context.Context, data []byte) ([][]byte, error) {
	if c.session == nil {
		return [][]byte{append([]byte(nil), data...)}, ctx.Err()
	}
	return c.session.AllGather(ctx, data)
}

// address names where a rank runs.
func (c *control) address(rank int) string {
	if c.session != nil && rank >= 0 && rank < len(c.session.Peers()) {
		p := &c.session.Peers()[rank]
		return fmt.Sprintf("host %s, pid %d", p.Host, p.PID)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("host %s, pid %d", host, os.Getpid())
}

// err returns the failure, nil while there is none.
func (c *control) err() error {
	if f := c.first.Load(); f != nil {
		return f.err
	}
	return nil
}

// close leaves the session. It is idempotent and takes seconds at most.
func (c *control) close() error {
	var err error
	c.once.Do(func() {
		close(c.over)
		if c.session != nil {
			err = c.session.Close()
		}
		c.mu.Lock()
		c.closed = true
		c.mu.Unlock()
		c.running.Wait()
		c.adopt(goccl.ErrClosed)
	})
	if errors.Is(err, goccl.ErrClosed) {
		return nil
	}
	return err
}
