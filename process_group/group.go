package processgroup

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/internal/clock"
)

// Group is a set of ranks and a view of it: what one rank calls collectives on.
// Package dist makes groups. A Group is safe for concurrent use; the order of
// execution is the order of calls, which must be the same on all ranks.
type Group struct {
	*core
	stream device.Stream // what calls of this view order after; nil: none
}

// core is the group that all its views share.
type core struct {
	cfg     Config
	backend Backend
	pid     int
	base    time.Time // zero of the time stamps
	epoch   int64     // the same on the cheap clock

	mu     *sync.Mutex // held over one call, so that numbers and Start have one order
	locked Locker      // the backend, when mu is its lock, too
	last   numbers
	flight flight // operations that have not ended
	free   *Op
	open   *batch // a Coalesce under way
	closed bool
	rec    recorder

	failure failure
	watch   watchdog
	views   atomic.Pointer[[]*Group]
	windows windows
	running sync.WaitGroup // goroutines of the group
	closing closing
}

// numbers are the last ones given out; core.mu guards them.
type numbers struct {
	serial uint64 // generation of an Op
	seq    uint64 // of a collective
	p2pSeq uint64 // of an operation that only sends and receives
}

// New returns the group of this rank. It is local: the backend has connected the
// ranks already. The caller closes the group; Close closes the backend. New
// panics when cfg is wrong, which is a mistake of the program that makes groups.
func New(cfg Config) *Group {
	if err := cfg.fill(); err != nil {
		panic("processgroup: " + err.Error())
	}
	c := &core{cfg: cfg, backend: cfg.Backend, mu: new(sync.Mutex), pid: os.Getpid(), base: time.Now(), epoch: clock.Now()}
	if l, ok := cfg.Backend.(Locker); ok {
		c.mu, c.locked = l.Lock(), l
	}
	c.failure.ctx, c.failure.cancel = context.WithCancelCause(context.Background())
	c.rec.init(&c.cfg, c.base)
	c.watch.init()
	g := &Group{core: c}
	c.views.Store(&[]*Group{g})
	c.running.Add(1)
	go func() {
		defer c.running.Done()
		c.watch.run(c)
	}()
	if cfg.Control != nil {
		cfg.Control.OnFailure(func(cause error) { c.fail(cause, false) })
	}
	return g
}

// now returns nanoseconds since the group was made, never 0.
func (c *core) now() int64 { return (clock.Now() - c.epoch) | 1 }

// Name returns the name given to the group.
func (c *core) Name() string { return c.cfg.Name }

// Rank returns the rank of this process in the group.
func (c *core) Rank() int { return c.cfg.Rank }

// Size returns the number of ranks.
func (c *core) Size() int { return c.cfg.Size }

// GlobalRank returns the rank in the job of rank r of the group.
func (c *core) GlobalRank(r int) (int, error) {
	if r < 0 || r >= c.cfg.Size {
		return -1, c.notMember(r)
	}
	return c.cfg.GlobalRanks[r], nil
}

// Backend returns the name of what moves the data: "ccl", "fake".
func (c *core) Backend() string { return c.backend.Name() }

// notMember says that r is no rank of the group, and helps who passed a rank of
// the job.
func (c *core) notMember(r int) error {
	if at := slices.Index(c.cfg.GlobalRanks, r); at >= 0 {
		return fmt.Errorf("%w: rank %d is not in group %q of %d; ranks are those of the group, and rank %d of the job is rank %d of it",
			goccl.ErrInvalid, r, c.cfg.Name, c.cfg.Size, r, at)
	}
	return fmt.Errorf("%w: rank %d is not in group %q of %d", goccl.ErrInvalid, r, c.cfg.Name, c.cfg.Size)
}

// On returns a view of the group whose calls order after stream s; an OnStream
// option wins over it. The view is cached, so asking again costs nothing. A nil
// stream gives the plain view.
func (g *Group) On(s device.Stream) *Group {
	for {
		views := g.views.Load()
		for _, v := range *views {
			if v.stream == s {
				return v
			}
		}
		v := &Group{core: g.core, stream: s}
		grown := append(slices.Clip(*views), v)
		if g.views.CompareAndSwap(views, &grown) {
			return v
		}
	}
}

// Transport names what the data of this rank travels on, "shm" for example;
// empty where the backend does not tell.
func (g *Group) Transport() string {
	if c, ok := g.backend.(Carrier); ok {
		return c.Transport()
	}
	return ""
}
