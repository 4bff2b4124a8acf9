package comm

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/exec"
	"github.com/goccl/goccl/comm/plan"
	"github.com/goccl/goccl/device"
)

// Call is what one operation does: a collective, one side of a transfer, or a
// batch of calls that run as one operation.
type Call struct {
	Coll goccl.Collective
	Op   goccl.ReduceOp
	Root int  // root, or the peer of a SendRecv
	Send bool // SendRecv: send Src to Root, else receive Dst from it
	Tag  uint32
	Src  device.Buffer
	Dst  device.Buffer
	// Stream is what a call on device memory orders after; nil on host.
	Stream device.Stream
	Batch  []Call // with Coll 0: all of them, as one operation
	// As makes the parts of a batch one collective in signatures and messages:
	// an AllGather into separate buffers is a batch of transfers. Optional.
	As goccl.Collective
	// Checked says that the caller has made the checks that Start makes: types,
	// counts, ranks and overlaps, and that the buffers lie in host memory.
	Checked bool
	// Number is the caller's own number for messages, for example the sequence
	// number in a process group. Optional.
	Number uint64
}

// Task is one operation under way. Backends keep Tasks and start them again and
// again, so that nothing is allocated; everyone else uses the methods of
// Communicator that return a Pending. The buffers of Call belong to the
// operation from Start until Test or Wait says that it has ended.
type Task struct {
	Call
	// What was chosen, set by Start.
	Algo     goccl.Algorithm
	Proto    goccl.Protocol
	Channels int
	gen      atomic.Uint32
	err      error
	part     part   // of a call that is no batch
	parts    []part // of a batch
	seq      uint64 // collectives on this communicator so far, this one included
	sig      uint32
	next     *Task
	done     bool         // guarded by engine.mu
	capture  capturer     // of the caller's stream, when it captured the operation
	away     bool         // runs on a device
	end      device.Event // of an operation that is away and not known to have ended
	broken   bool         // failed on this rank; ends when the cause is known to all
}

// part is one Program run on one call.
type part struct {
	key     plan.Key
	args    exec.Args
	bound   *exec.Bound
	sign    uint64   // of what the call does
	binding *binding // while it is being connected
	run     *exec.Run
	chain   int // parts of one chain run one after the other
	begun   bool
	ended   bool
	self    bool // a copy within this rank, no Program
}

// over lets go of what the operation used. Called by who ends it.
func (t *Task) over(err error) {
	t.err = err
	t.Src.Owner, t.Dst.Owner = nil, nil // the buffers are the user's again
	t.Stream = nil
	clear(t.Batch)
}

// word returns what to sleep on while the operation is blocked; nil: nothing.
func (t *Task) word() *atomic.Uint64 {
	if t.Coll != 0 {
		if !t.part.begun {
			return nil
		}
		return t.part.run.Word()
	}
	for i := range t.parts {
		if r := t.parts[i].run; r != nil {
			return r.Word()
		}
	}
	return nil
}

// Pending is an operation that was started: a value, safe to copy and to keep
// after the operation has ended.
type Pending struct {
	c   *Communicator
	t   *Task
	gen uint32
	err error
}

// Wait blocks until the operation has ended or ctx does, and helps to run it.
// ctx bounds the waiting only: the operation goes on.
func (p Pending) Wait(ctx context.Context) error {
	if p.t == nil {
		return p.err
	}
	if p.t.gen.Load() != p.gen {
		return nil
	}
	err, ended := p.c.wait(ctx, p.t)
	if ended {
		p.release()
	}
	return err
}

// Test reports whether the operation has ended. It never blocks and pushes the
// operation on.
func (p Pending) Test() (bool, error) {
	if p.t == nil {
		return true, p.err
	}
	if p.t.gen.Load() != p.gen {
		return true, nil
	}
	ended, err := p.c.Test(p.t)
	if ended {
		p.release()
	}
	return ended, err
}

// release gives the Task back. A Pending that is asked again afterwards says
// that the operation has ended well; its first answer had the error.
func (p Pending) release() {
	if p.t.gen.CompareAndSwap(p.gen, p.gen+1) {
		p.c.put(p.t)
	}
}

// describe says what a call is, in the words of an error message.
func (c *Call) describe() string { return c.brief().String() }

// brief is what a message says of a call: small, and free of the user's memory.
type brief struct {
	coll, as goccl.Collective
	op       goccl.ReduceOp
	dtype    goccl.DType
	send     bool
	tag      uint32
	count    int
	root     int
	batch    int
}

func (c *Call) brief() brief {
	u := c.unitBuffer()
	return brief{coll: c.Coll, as: c.As, op: c.Op, dtype: u.DType, send: c.Send, tag: c.Tag, count: u.Count, root: c.Root, batch: len(c.Batch)}
}

// String returns, for example, "allreduce f32[4] sum".
func (b brief) String() string {
	switch {
	case b.coll == goccl.SendRecv && b.send:
		return fmt.Sprintf("send %v[%d] to rank %d%s", b.dtype, b.count, b.root, tag(b.tag))
	case b.coll == goccl.SendRecv:
		return fmt.Sprintf("recv %v[%d] from rank %d%s", b.dtype, b.count, b.root, tag(b.tag))
	case b.coll == 0 && b.as != 0:
		return fmt.Sprintf("%v of %d buffers", b.as, b.batch)
	case b.coll == 0:
		return fmt.Sprintf("batch of %d operations", b.batch)
	case b.coll == goccl.Barrier:
		return "barrier"
	}
	s := fmt.Sprintf("%v %v[%d]", b.coll, b.dtype, b.count)
	if b.coll.Reduces() {
		s += " " + b.op.Kind().String()
	}
	if b.coll.Rooted() {
		s += fmt.Sprintf(" root %d", b.root)
	}
	return s
}

func tag(t uint32) string {
	if t == 0 {
		return ""
	}
	return fmt.Sprintf(" tag %d", t)
}

// unitBuffer is the buffer whose size all ranks share: one rank's part where a
// collective has parts, else the whole.
func (c *Call) unitBuffer() *device.Buffer {
	switch c.Coll {
	case goccl.ReduceScatter, goccl.Scatter:
		return &c.Dst
	case goccl.Broadcast:
		if c.Src.Count == 0 && c.Src.DType == 0 {
			return &c.Dst
		}
	case goccl.SendRecv:
		if !c.Send {
			return &c.Dst
		}
	}
	return &c.Src
}
