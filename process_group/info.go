package processgroup

import (
	"iter"
	"time"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/trace"
)

// OpInfo is what the flight recorder knows of one operation. Times that are not
// reached are zero; Algo and Proto are empty until the backend has begun it.
type OpInfo struct {
	Op, Group, Label, Algo, Proto string
	Seq                           uint64 // from 1; sends and receives count apart from collectives
	P2P                           bool   // a send, a receive or a batch of them
	DType                         goccl.DType
	Redop                         goccl.ReduceOp
	Reduces                       bool  // Redop means something
	Root                          int   // root or peer; -1 where there is none
	Parts                         int   // operations in a batch or Coalesce
	Channels                      int   // 0 until the backend has begun it
	Count, Bytes                  int64 // of the larger of input and output
	State                         string
	Queued, Started, Ended        time.Time
	Waiting                       []Lag // whom the group waits for, once that is known
}

// Info returns what is known of the operation. It never blocks. Of an operation
// that ended more than 2,000 operations ago only the group's name is left.
func (w Work) Info() OpInfo {
	op := w.op
	if op == nil {
		return OpInfo{Root: -1}
	}
	c := op.life.core
	c.mu.Lock()
	e := c.rec.at(w.gen)
	if e == nil {
		c.mu.Unlock()
		return OpInfo{Group: c.cfg.Name, Root: -1}
	}
	info := c.info(e, c.find(w.gen))
	c.mu.Unlock()
	if info.State == trace.Queued || info.State == trace.Started {
		info.Waiting = c.watch.lagging()
	}
	return info
}

// find returns the operation in flight with this generation. core.mu is held.
func (c *core) find(gen uint64) *Op {
	for op := c.flight.head; op != nil; op = op.life.next {
		if op.life.gen == gen {
			return op
		}
	}
	return nil
}

// info copies an entry out; op is the operation while it is in flight. core.mu is
// held.
func (c *core) info(e *record, op *Op) OpInfo {
	now := *e
	if op != nil {
		now.began, now.choice = op.beganAt()
	}
	return OpInfo{Op: now.name, Group: c.cfg.Name, Label: now.label, Algo: now.algo(), Proto: now.proto(), Channels: now.choice.channels(),
		Seq: now.seq, P2P: now.flags&recP2P != 0, DType: now.dtype, Redop: now.redop, Reduces: now.flags&recReduces != 0,
		Root: int(now.root), Parts: int(now.parts), Count: now.count, Bytes: now.bytes, State: now.state(),
		Queued: c.rec.stamp(now.queued), Started: c.rec.stamp(now.began), Ended: c.rec.stamp(now.ended)}
}

// Operations yields what the flight recorder holds, oldest first: a copy made
// when the iteration begins.
func (c *core) Operations() iter.Seq[OpInfo] {
	return func(yield func(OpInfo) bool) {
		for _, info := range c.snapshot() {
			if !yield(info) {
				return
			}
		}
	}
}

// snapshot copies the recorder out.
func (c *core) snapshot() []OpInfo {
	c.mu.Lock()
	defer c.mu.Unlock()
	flying := make(map[uint64]*Op, c.flight.n)
	for op := c.flight.head; op != nil; op = op.life.next {
		flying[op.life.gen] = op
	}
	all := make([]OpInfo, 0, min(c.rec.last, recorderSize))
	for gen := c.rec.oldest(); gen <= c.rec.last; gen++ {
		if e := c.rec.at(gen); e != nil {
			all = append(all, c.info(e, flying[gen]))
		}
	}
	return all
}
