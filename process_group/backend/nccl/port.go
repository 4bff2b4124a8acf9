package nccl

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/device/cuda"
	processgroup "github.com/goccl/goccl/process_group"
	"github.com/goccl/goccl/process_group/backend/nccl/libnccl"
)

// gpu is the port to a real communicator on a real device.
type gpu struct {
	// mu is held in calls on comm: NCCL asks that of communicators that do not
	// block even for the question what they do. dead says that comm is being freed.
	mu   sync.Mutex
	dead bool
	comm *libnccl.Comm

	dev      *cuda.Device
	own      *cuda.Stream // where operations run, unless onCaller
	onCaller bool         // they run on the stream of their call
	blocking bool         // NCCL's calls return when the work is on the stream
	met      acquaintance
	events   []*cuda.Event // of all jobs, to be released in the end
}

var _ port = (*gpu)(nil)

// launch implements port.
func (g *gpu) launch(j *job) (libnccl.Result, error) {
	on, err := g.streamOf(j.op)
	if err != nil {
		return 0, err
	}
	j.on = on
	if j.event == nil {
		if j.event, err = g.dev.NewEvent(); err != nil {
			return 0, err
		}
		g.events = append(g.events, j.event)
	}
	sec, err := on.Enter()
	if err != nil {
		return 0, err
	}
	defer sec.Leave()
	if err := g.order(sec, on, j.op); err != nil {
		return 0, err
	}
	if j.captured, err = sec.Capturing(); err != nil {
		return 0, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	r, err := g.issue(j.calls, on.Handle())
	if err != nil || r != libnccl.Success {
		return r, err
	}
	g.met.add(j.calls)
	return r, sec.RecordTo(j.event)
}

// streamOf returns where op runs.
func (g *gpu) streamOf(op *processgroup.Op) (*cuda.Stream, error) {
	if !g.onCaller {
		return g.own, nil
	}
	s := op.Stream
	for _, p := range op.Parts {
		if s == nil {
			s = p.Stream
		}
	}
	if s == nil {
		return g.own, nil
	}
	return native(s)
}

func native(s device.Stream) (*cuda.Stream, error) {
	c, ok := s.(*cuda.Stream)
	if !ok {
		return nil, fmt.Errorf("%w: NCCL runs on streams of package device/cuda, not on a %T; WrapStream of a cuda.Device takes a foreign handle", goccl.ErrInvalid, s)
	}
	return c, nil
}

// order makes on, whose section it is, wait for the streams that op is called on.
func (g *gpu) order(sec cuda.Section, on *cuda.Stream, op *processgroup.Op) error {
	if err := g.after(sec, on, op.Stream); err != nil {
		return err
	}
	for i, p := range op.Parts {
		if p.Stream != op.Stream && (i == 0 || p.Stream != op.Parts[i-1].Stream) {
			if err := g.after(sec, on, p.Stream); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *gpu) after(sec cuda.Section, on *cuda.Stream, s device.Stream) error {
	if s == nil {
		return nil
	}
	c, err := native(s)
	switch {
	case err != nil:
		return err
	case c.Device().Context() != g.dev.Context():
		return fmt.Errorf("%w: the stream belongs to another context of %v than the group's device", goccl.ErrInvalid, c.Device().ID())
	case c.Handle() == on.Handle():
		return nil
	}
	e, err := sec.On(c).Record()
	if err != nil {
		return err
	}
	defer e.Release()
	return sec.Wait(e)
}

// issue makes the calls on stream, as one group when there are several. The thread
// has the device current.
func (g *gpu) issue(calls []call, stream uintptr) (libnccl.Result, error) {
	if len(calls) == 0 {
		return libnccl.Success, nil
	}
	if len(calls) == 1 && calls[0].elem == 0 {
		r := g.do(&calls[0], stream)
		return r, g.comm.Err(names[calls[0].fn], r)
	}
	// A scaled reduction needs the group too: its operator is destroyed behind it,
	// which a communicator that does not block would refuse once it is at work.
	lib := g.comm.Library()
	if r := lib.GroupStart(); r.Failed() {
		return r, lib.Err("ncclGroupStart", r)
	}
	var failed error
	for i := range calls {
		if r := g.do(&calls[i], stream); r.Failed() && failed == nil {
			failed = g.comm.Err(names[calls[i].fn], r)
		}
	}
	r := lib.GroupEnd() // also after a failure: the thread must not stay in a group
	if failed == nil {
		failed = g.comm.Err("ncclGroupEnd", r)
	}
	return r, failed
}

var names = [...]string{allReduce: "ncclAllReduce", reduce: "ncclReduce", broadcast: "ncclBroadcast", allGather: "ncclAllGather",
	reduceScatter: "ncclReduceScatter", send: "ncclSend", recv: "ncclRecv"}

// do makes one call.
func (g *gpu) do(c *call, stream uintptr) libnccl.Result {
	if c.elem != 0 {
		return g.scaled(c, stream)
	}
	switch c.fn {
	case allReduce:
		return g.comm.AllReduce(c.send, c.recv, c.count, c.dtype, c.op, stream)
	case reduce:
		return g.comm.Reduce(c.send, c.recv, c.count, c.dtype, c.op, c.peer, stream)
	case broadcast:
		return g.comm.Broadcast(c.send, c.recv, c.count, c.dtype, c.peer, stream)
	case allGather:
		return g.comm.AllGather(c.send, c.recv, c.count, c.dtype, stream)
	case reduceScatter:
		return g.comm.ReduceScatter(c.send, c.recv, c.count, c.dtype, c.op, stream)
	case send:
		return g.comm.Send(c.send, c.count, c.dtype, c.peer, stream)
	}
	return g.comm.Recv(c.recv, c.count, c.dtype, c.peer, stream)
}

// scaled makes the reduction that a call needs, and destroys it after.
func (g *gpu) scaled(c *call, stream uintptr) libnccl.Result {
	op, r := g.comm.PreMulSum(c.scale, c.elem)
	if r.Failed() {
		return r
	}
	plain := *c
	plain.op, plain.elem = op, 0
	r = g.do(&plain, stream)
	if d := g.comm.DestroyOp(op); d.Failed() && !r.Failed() {
		return d
	}
	return r
}

// seal implements port.
func (g *gpu) seal(j *job) error {
	sec, err := j.on.Enter()
	if err != nil {
		return err
	}
	defer sec.Leave()
	g.met.add(j.calls)
	return sec.RecordTo(j.event)
}

// mayBlock implements port. A communicator that blocks does so where two ranks
// meet for the first time in some way, since NCCL connects them then.
func (g *gpu) mayBlock(j *job) bool {
	return g.blocking && !g.onCaller && !g.met.all(j.calls)
}

// ended implements port. An operation that was captured into a graph ends with the
// capture: what replays of the graph do, no Work tells. Its event cannot be asked,
// and asking would end the capture.
func (g *gpu) ended(j *job) (bool, error) {
	if j.captured {
		capturing, err := j.on.Capturing()
		return !capturing, err
	}
	return j.event.Done()
}

// state implements port. While another call is under way there is nothing to say.
func (g *gpu) state() (libnccl.Result, error) {
	if !g.mu.TryLock() {
		return libnccl.InProgress, nil
	}
	defer g.mu.Unlock()
	if g.dead {
		return libnccl.Success, nil
	}
	r := g.comm.AsyncError()
	return r, g.comm.Err("NCCL in the background", r)
}

// stopWithin bounds the wait for what an abort stops on the device.
const stopWithin = 5 * time.Second

// abort implements port. It returns when the group's own stream is empty: NCCL may
// do the rest in the background.
func (g *gpu) abort() error {
	g.bury()
	err := g.current(func() error { return g.comm.Library().Err("ncclCommAbort", g.comm.Abort()) })
	ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
	defer cancel()
	return errors.Join(err, g.own.Sync(ctx))
}

// alone runs fn, a call on comm, while nobody else is in one.
func (g *gpu) alone(fn func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	fn()
}

// bury keeps others from asking a communicator that is being freed.
func (g *gpu) bury() { g.alone(func() { g.dead = true }) }

// finalizePoll is how often a finalize in the background is asked for.
const finalizePoll = time.Millisecond

// close implements port. What NCCL is still at, since ranks did not meet in it, can
// only be aborted.
func (g *gpu) close() error {
	if r, err := g.state(); err == nil && r == libnccl.InProgress {
		return g.abort()
	}
	g.bury()
	return g.current(func() error {
		r := g.comm.Finalize()
		if err := g.comm.Err("ncclCommFinalize", r); err != nil {
			return err
		}
		for !g.blocking {
			r := g.comm.AsyncError()
			if err := g.comm.Err("ncclCommFinalize in the background", r); err != nil {
				return err
			}
			if r != libnccl.InProgress {
				break
			}
			time.Sleep(finalizePoll)
		}
		return g.comm.Library().Err("ncclCommDestroy", g.comm.Destroy())
	})
}

// free gives back what belongs to the port besides the communicator, when all jobs
// have ended.
func (g *gpu) free() {
	for _, e := range g.events {
		e.Release()
	}
	g.events = nil
	_ = g.own.Close() // nothing runs on it any more
}

// current runs fn with the device current on its thread.
func (g *gpu) current(fn func() error) error {
	sec, err := g.own.Enter()
	if err != nil {
		return err
	}
	defer sec.Leave()
	return fn()
}

// join makes s wait for j, which was launched.
func (g *gpu) join(j *job, s device.Stream) error {
	if c, ok := s.(*cuda.Stream); ok && c == j.on {
		return nil
	}
	return s.WaitEvent(j.event)
}
