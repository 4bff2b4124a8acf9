package processgroup

import (
	"github.com/goccl/goccl"
	"github.com/goccl/goccl/internal/release"
)

// sweepAt is how many operations may be in flight before a call that finds no
// free Op looks for ended ones, so that a program that never waits does not grow.
const sweepAt = 64

// take returns an Op of a new generation that the group holds, with nothing in
// it. core.mu is held.
func (c *core) take(coll goccl.Collective, s *settings) *Op {
	op := c.free
	if op == nil {
		op = new(Op)
		op.life.core = c
		c.backend.Attach(op)
	} else {
		c.free = op.life.next
		op.life.next = nil
	}
	c.last.serial++
	op.Coll, op.Redop, op.Root, op.Send = coll, goccl.Sum, -1, false
	op.Tag, op.Stream, op.Label = s.tag, s.stream, s.label
	op.life.gen, op.life.holds, op.life.state = c.last.serial, 1, opBuilding
	release.Store(&op.life.began, 0)
	return op
}

// crowded reports whether it is time to sweep. core.mu is held.
func (c *core) crowded() bool { return c.free == nil && c.flight.n >= sweepAt }

// sweep settles operations at the front that have ended well and that nobody
// waits for. A failed one is left to its waiters and the watchdog, since telling
// the peers needs core.mu free. core.mu is held, and may be given up meanwhile.
func (c *core) sweep() {
	for op := c.flight.head; op != nil; op = c.flight.head {
		if ok, err := c.test(op); !ok || err != nil {
			return
		}
		c.markEnded(op, nil)
		c.drop(op, 1)
	}
}

// test asks the backend about op, unless it never took it. core.mu is held, and may
// be given up meanwhile.
func (c *core) test(op *Op) (bool, error) {
	switch err := op.life.startErr; {
	case err != nil:
		return true, err
	case c.locked != nil:
		return c.locked.TestLocked(op)
	}
	return c.backend.Test(op)
}

// drop gives up n holds of op and frees it when they were the last. core.mu is held.
func (c *core) drop(op *Op, n int) {
	if op.life.holds -= n; op.life.holds == 0 {
		c.recycle(op)
	}
}

// recycle lets go of the buffers and puts op into the free list. core.mu is held.
func (c *core) recycle(op *Op) {
	op.Src.Owner, op.Src.Count, op.Src.DType = nil, 0, 0
	op.Dst.Owner, op.Dst.Count, op.Dst.DType = nil, 0, 0
	if len(op.SrcList)+len(op.DstList)+len(op.Batch)+len(op.Parts)+len(op.SendCounts) > 0 {
		c.recycleLists(op)
	}
	op.life.done = nil
	op.life.next, c.free = c.free, op
}

func (c *core) recycleLists(op *Op) {
	op.SrcList, op.DstList = empty(op.SrcList), empty(op.DstList)
	op.SendCounts, op.RecvCounts = op.SendCounts[:0], op.RecvCounts[:0]
	op.Batch = empty(op.Batch)
	for _, part := range op.Parts {
		c.recycle(part)
	}
	op.Parts = empty(op.Parts)
}

// empty clears s, so that it keeps nothing alive, and keeps its capacity.
func empty[T any](s []T) []T {
	clear(s)
	return s[:0]
}

// flight is the list of operations that have not ended, oldest first.
type flight struct {
	head, tail *Op
	n          int
	lastEnd    int64 // nanoseconds after core.base
}

func (f *flight) push(op *Op) {
	op.life.prev, op.life.next = f.tail, nil
	if f.tail == nil {
		f.head = op
	} else {
		f.tail.life.next = op
	}
	f.tail = op
	f.n++
}

func (f *flight) remove(op *Op) {
	prev, next := op.life.prev, op.life.next
	if prev == nil {
		f.head = next
	} else {
		prev.life.next = next
	}
	if next == nil {
		f.tail = prev
	} else {
		next.life.prev = prev
	}
	op.life.prev, op.life.next = nil, nil
	f.n--
}
