package main

import (
	"fmt"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/dist"
	processgroup "github.com/goccl/goccl/process_group"
)

// task is one collective on one size: its buffers, the call, and what must come
// out.
type task struct {
	o       *options
	g       *dist.Group // on which start calls
	host    *dist.Group // on which the ranks meet between batches
	n, rank int
	inPlace bool
	bytes   int64 // the larger of a rank's send and receive buffer
	count   int   // elements of the smaller one, as nccl-tests counts
	in, out array // the same array in place
	values  array // what write puts into in
	src     device.Buffer
	dst     device.Buffer
	srcAt   int // where src begins in the input
}

// newTask makes the buffers for a size, in p. The size is rounded down to whole
// elements, and up to one element for each rank where every rank has a part.
func newTask(o *options, g *dist.Group, p place, bytes int64, inPlace bool) (*task, error) {
	t := &task{o: o, g: g, host: g, n: g.Size(), rank: g.Rank(), inPlace: inPlace}
	big := int(bytes) / o.dtype.Size()
	parts := 1
	switch o.coll {
	case goccl.AllGather, goccl.ReduceScatter, goccl.AllToAll, goccl.Gather, goccl.Scatter:
		parts = t.n
	}
	t.count = max(big/parts, min(parts-1, 1))
	big = t.count * parts
	t.bytes = int64(big * o.dtype.Size())
	sendBig := o.coll == goccl.ReduceScatter || o.coll == goccl.AllToAll || o.coll == goccl.Scatter
	recvBig := o.coll == goccl.AllGather || o.coll == goccl.AllToAll || o.coll == goccl.Gather
	size := func(all bool) int {
		if all {
			return big
		}
		return t.count
	}
	var err error
	if !inPlace {
		if t.in, err = p.array(o.dtype, size(sendBig)); err == nil {
			t.out, err = p.array(o.dtype, size(recvBig))
		}
		if err != nil {
			return nil, err
		}
		t.src, t.dst = t.in.buffer(), t.out.buffer()
		return t, nil
	}
	if t.in, err = p.array(o.dtype, big); err != nil {
		return nil, err
	}
	t.out = t.in
	t.src, t.dst = t.in.buffer(), t.in.buffer()
	switch {
	case recvBig && !sendBig:
		t.srcAt = t.rank * t.count
		t.src = t.src.Slice(t.srcAt, t.srcAt+t.count)
	case sendBig && !recvBig:
		t.dst = t.dst.Slice(t.rank*t.count, (t.rank+1)*t.count)
	}
	return t, nil
}

// hasInPlace reports whether the collective can be done in place here.
func hasInPlace(c goccl.Collective) bool { return c != goccl.AllToAll && c != goccl.SendRecv }

// write puts this rank's input in place, at the cost of a copy.
func (t *task) write() {
	if t.values == nil {
		t.values = newArray(t.o.dtype, t.in.buffer().Count)
		t.values.fill(func(i int) float64 { return value(t.rank, i-t.srcAt) })
	}
	t.in.copy(t.values)
}

// start starts the operation.
func (t *task) start() processgroup.Work {
	g, o := t.g, t.o
	switch o.coll {
	case goccl.AllReduce:
		return g.AllReduceInto(t.dst, t.src, o.op)
	case goccl.Reduce:
		if !t.inPlace && t.rank == o.root {
			// Reduce works in place: the root's own input is in its output.
			return g.Reduce(t.dst, o.op, o.root)
		}
		return g.Reduce(t.src, o.op, o.root)
	case goccl.Broadcast:
		if !t.inPlace && t.rank != o.root {
			return g.Broadcast(t.dst, o.root)
		}
		return g.Broadcast(t.src, o.root)
	case goccl.AllGather:
		return g.AllGatherInto(t.dst, t.src)
	case goccl.ReduceScatter:
		return g.ReduceScatter(t.dst, t.src, o.op)
	case goccl.AllToAll:
		return g.AllToAll(t.dst, t.src)
	case goccl.Gather:
		return g.Gather(t.parts(t.dst, o.root), t.src, o.root)
	case goccl.Scatter:
		return g.Scatter(t.dst, t.parts(t.src, o.root), o.root)
	default:
		return g.BatchSendRecv([]processgroup.P2P{{Buf: t.src, Peer: (t.rank + 1) % t.n}, {Buf: t.dst, Peer: (t.rank + t.n - 1) % t.n, Recv: true}})
	}
}

// parts cuts the root's buffer into one part for each rank.
func (t *task) parts(b device.Buffer, root int) []device.Buffer {
	if t.rank != root {
		return nil
	}
	out := make([]device.Buffer, t.n)
	for q := range out {
		out[q] = b.Slice(q*t.count, (q+1)*t.count)
	}
	return out
}

// prepare is write and, for an out-of-place Reduce or Broadcast, which the group
// does in place, the copy that comes with it.
func (t *task) prepare() {
	t.write()
	if t.o.coll == goccl.Reduce && !t.inPlace && t.rank == t.o.root {
		t.out.copy(t.values)
	}
}

// wrong counts the elements of this rank's output that are not what they must be.
func (t *task) wrong() int {
	o := t.o
	switch o.coll {
	case goccl.AllReduce:
		return t.out.wrong(func(i int) float64 { return reduced(o.op, t.n, i) })
	case goccl.Reduce:
		if t.rank != o.root {
			return 0
		}
		return t.out.wrong(func(i int) float64 { return reduced(o.op, t.n, i) })
	case goccl.Broadcast:
		if t.rank == o.root {
			return t.in.wrong(func(i int) float64 { return value(o.root, i) })
		}
		return t.out.wrong(func(i int) float64 { return value(o.root, i) })
	case goccl.AllGather, goccl.Gather:
		if o.coll == goccl.Gather && t.rank != o.root {
			return 0
		}
		return t.out.wrong(func(i int) float64 { return value(i/max(t.count, 1), i%max(t.count, 1)) })
	case goccl.ReduceScatter:
		return t.part(func(i int) float64 { return reduced(o.op, t.n, t.rank*t.count+i) })
	case goccl.Scatter:
		return t.part(func(i int) float64 { return value(o.root, t.rank*t.count+i) })
	case goccl.AllToAll:
		return t.out.wrong(func(i int) float64 { return value(i/max(t.count, 1), t.rank*t.count+i%max(t.count, 1)) })
	default:
		return t.out.wrong(func(i int) float64 { return value((t.rank+t.n-1)%t.n, i) })
	}
}

// part checks an output that is this rank's part of a larger array in place.
func (t *task) part(f func(i int) float64) int {
	if !t.inPlace {
		return t.out.wrong(f)
	}
	at := t.rank * t.count
	all := t.out.wrong(func(i int) float64 {
		if i >= at && i < at+t.count {
			return f(i - at)
		}
		return value(t.rank, i) // the other parts are as they were
	})
	return all
}

// busFactor is nccl-tests' factor from algbw to busbw.
func busFactor(c goccl.Collective, n int) float64 {
	switch c {
	case goccl.AllReduce:
		return 2 * float64(n-1) / float64(n)
	case goccl.AllGather, goccl.ReduceScatter, goccl.AllToAll, goccl.Gather, goccl.Scatter:
		return float64(n-1) / float64(n)
	}
	return 1
}

func (t *task) String() string { return fmt.Sprintf("%v of %d bytes", t.o.coll, t.bytes) }
