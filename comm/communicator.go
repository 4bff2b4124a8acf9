package comm

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/bootstrap"
	"github.com/goccl/goccl/comm/exec"
	"github.com/goccl/goccl/comm/graph"
	"github.com/goccl/goccl/comm/plan"
	"github.com/goccl/goccl/comm/transport"
	"github.com/goccl/goccl/device"
)

// Communicator is one rank's end of a communicator. It is safe for concurrent
// use; operations run in the order in which the calls were made.
type Communicator struct {
	identity
	engine
	control
	shape
	programs map[plan.Key]*exec.Bound // guarded by engine.mu
	choices  [choices]choice          // guarded by engine.mu
	recent   *choice                  // the last one found, guarded by engine.mu
	binds    sync.Mutex               // held by the one that connects a Program
	exec     *exec.Exec
	links    *links
	windows  windows
	busy     []bool // chains of a batch, by the token's holder
	pool     sync.Pool
	acc      Accelerator // nil: host memory only
	onDevice *devices    // nil likewise; guarded by engine.mu
}

// identity is who this rank is and what it was given.
type identity struct {
	rank, size int
	name       string
	tuner      Tuner
	timeout    time.Duration
	noTimeout  bool
	log        *slog.Logger
}

// control is the connection to the other ranks' fate.
type control struct {
	session  *bootstrap.Session // nil for one rank
	life     context.Context    // ends with the failure or Close
	endLife  context.CancelCauseFunc
	failedC  chan struct{}
	linked   chan struct{}           // closed once links is there
	own      atomic.Pointer[failure] // what this rank reported
	left     map[int]time.Time       // guarded by engine.mu
	asking   atomic.Bool
	linkDown atomic.Bool
	owned    owned
	closing  sync.Once
	closeErr error
}

// shape is where the ranks are and what they share.
type shape struct {
	peers     []transport.Peer
	graph     *graph.Graph
	hosts     int
	crowd     crowd
	layout    exec.Layout
	regions   []transport.Segment           // by rank, nil when not mapped
	bell      atomic.Pointer[atomic.Uint64] // rung when this rank must look up; nil when not mapped
	mapper    transport.Mapper              // nil when not mapped
	windowIDs uint32                        // guarded by engine.mu
}

// crowd is how ranks share their machines; all ranks know the same one.
type crowd struct {
	ranks     int  // the most ranks of one host
	cores     int  // the fewest cores that a host's ranks share
	inProcess bool // all ranks are in one process
}

// Rank returns this rank.
func (c *Communicator) Rank() int { return c.rank }

// Size returns the number of ranks.
func (c *Communicator) Size() int { return c.size }

// Name returns the name it was given.
func (c *Communicator) Name() string { return c.name }

// Peers returns what every rank said of itself, by rank. Not to be changed.
func (c *Communicator) Peers() []transport.Peer { return c.peers }

// Mapped reports whether all ranks map each other's memory.
func (c *Communicator) Mapped() bool { return c.graph.Mapped }

// TransportTo names the transport to a peer: "inproc", "shm", "net/socket".
func (c *Communicator) TransportTo(peer int) string {
	if c.links == nil || peer == c.rank {
		return "self"
	}
	return c.links.transportTo(peer)
}

// AllReduce puts the reduction of all ranks' src into every dst. dst may be src.
func (c *Communicator) AllReduce(dst, src device.Buffer, op goccl.ReduceOp) Pending {
	return c.Do(Call{Coll: goccl.AllReduce, Op: op, Src: src, Dst: dst})
}

// Reduce puts the reduction of all ranks' src into the root's dst; dst is not
// used elsewhere.
func (c *Communicator) Reduce(dst, src device.Buffer, op goccl.ReduceOp, root int) Pending {
	return c.Do(Call{Coll: goccl.Reduce, Op: op, Root: root, Src: src, Dst: dst})
}

// Broadcast puts the root's b into every rank's b.
func (c *Communicator) Broadcast(b device.Buffer, root int) Pending {
	return c.Do(Call{Coll: goccl.Broadcast, Root: root, Src: b, Dst: b})
}

// AllGather puts every rank's src, in rank order, into every dst, which has Size
// times the elements. src may be this rank's part of dst.
func (c *Communicator) AllGather(dst, src device.Buffer) Pending {
	return c.Do(Call{Coll: goccl.AllGather, Src: src, Dst: dst})
}

// ReduceScatter puts part r of the reduction of all ranks' src into rank r's
// dst; src has Size times the elements. dst may be this rank's part of src.
func (c *Communicator) ReduceScatter(dst, src device.Buffer, op goccl.ReduceOp) Pending {
	return c.Do(Call{Coll: goccl.ReduceScatter, Op: op, Src: src, Dst: dst})
}

// AllToAll puts part r of rank q's src into part q of rank r's dst. The buffers
// must not overlap.
func (c *Communicator) AllToAll(dst, src device.Buffer) Pending {
	return c.Do(Call{Coll: goccl.AllToAll, Src: src, Dst: dst})
}

// Gather puts every rank's src, in rank order, into the root's dst.
func (c *Communicator) Gather(dst, src device.Buffer, root int) Pending {
	return c.Do(Call{Coll: goccl.Gather, Root: root, Src: src, Dst: dst})
}

// Scatter puts part r of the root's src into rank r's dst.
func (c *Communicator) Scatter(dst, src device.Buffer, root int) Pending {
	return c.Do(Call{Coll: goccl.Scatter, Root: root, Src: src, Dst: dst})
}

// Send sends b to a peer, which must receive the same number and type.
func (c *Communicator) Send(b device.Buffer, peer int) Pending {
	return c.Do(Call{Coll: goccl.SendRecv, Send: true, Root: peer, Src: b})
}

// Recv receives b from a peer. A send and a receive that wait for each other
// belong in one Batch.
func (c *Communicator) Recv(b device.Buffer, peer int) Pending {
	return c.Do(Call{Coll: goccl.SendRecv, Root: peer, Dst: b})
}

// Batch runs all calls as one operation: transfers in any direction at the same
// time, those with one peer in one direction in order.
func (c *Communicator) Batch(calls []Call) Pending { return c.Do(Call{Batch: calls}) }

// Barrier ends on no rank before every rank has called it.
func (c *Communicator) Barrier(ctx context.Context) error {
	return c.Do(Call{Coll: goccl.Barrier}).Wait(ctx)
}

// Do starts any call. The Pending holds the refusal of a call that cannot be
// right.
func (c *Communicator) Do(call Call) Pending {
	t, ok := c.pool.Get().(*Task)
	if !ok {
		t = new(Task)
	}
	t.Call = call
	if err := c.Start(t); err != nil {
		c.pool.Put(t)
		e := goccl.NewError(call.describe(), err)
		e.Rank, e.Group = c.rank, c.name
		return Pending{c: c, err: e}
	}
	return Pending{c: c, t: t, gen: t.gen.Load()}
}

// put gives an ended Task back to the pool.
func (c *Communicator) put(t *Task) {
	t.Call = Call{}
	c.pool.Put(t)
}

// Close waits for what is queued, bounded by the timeout, says goodbye and frees
// everything. It is idempotent. All ranks should have ended their operations:
// one that still needs this rank fails and names it.
func (c *Communicator) Close() error {
	c.closing.Do(func() { c.closeErr = c.shut() })
	return c.closeErr
}

func (c *Communicator) shut() error {
	c.mu.Lock()
	c.closed = true
	tail, away := c.tail, c.lastOnDevice()
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	var errs []error
	for _, last := range []*Task{tail, away} {
		if last == nil {
			continue
		}
		// The error of a failed operation is its caller's; only a wait that did
		// not end is Close's.
		if err, ended := c.wait(ctx, last); !ended {
			errs = append(errs, err)
			c.adopt(err)
		}
	}
	if c.links != nil && c.failed.Load() == nil {
		errs = append(errs, c.links.close(ctx))
	}
	errs = append(errs, c.leaveDevice(ctx))
	c.adopt(goccl.ErrClosed)
	close(c.stop)
	c.nudge()
	<-c.stopped
	if c.session != nil {
		errs = append(errs, c.session.Close())
	}
	c.owned.wait()
	if c.links != nil {
		errs = append(errs, c.links.close(ctx))
	}
	if l := c.windows.list.Load(); l != nil {
		for _, w := range *l {
			errs = append(errs, closeAll(w.parts))
		}
	}
	errs = append(errs, closeAll(c.regions))
	return errors.Join(errs...)
}
