package main

import (
	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/device/cuda"
	"github.com/goccl/goccl/process_group/backend/nccl/libnccl"
)

// direct calls NCCL as nccl-tests does, from one thread in a loop, with nothing of
// the library in between: no Work, no event behind each operation. It is what
// somebody who has NCCL already would measure.
type direct struct{ comm *libnccl.Comm }

// queue puts iters operations of t on a stream.
func (d *direct) queue(on *cuda.Stream, t *task, iters int) error {
	dtype, err := libnccl.MovingTypeOf(t.o.dtype)
	if err != nil {
		return err
	}
	var op libnccl.RedOp
	if t.o.coll.Reduces() {
		if op, err = libnccl.OpOf(t.o.op); err != nil {
			return err
		}
	}
	sec, err := on.Enter()
	if err != nil {
		return err
	}
	defer sec.Leave()
	for range iters {
		if err := d.comm.Err("NCCL's "+t.o.coll.String(), d.call(t, dtype, op, on.Handle())); err != nil {
			return err
		}
	}
	return nil
}

// call makes one operation: the same that start has the group make.
func (d *direct) call(t *task, dtype libnccl.DataType, op libnccl.RedOp, stream uintptr) libnccl.Result {
	o, src, dst := t.o, t.src, t.dst
	switch o.coll {
	case goccl.AllReduce:
		return d.comm.AllReduce(src.Addr, dst.Addr, src.Count, dtype, op, stream)
	case goccl.Reduce:
		if !t.inPlace && t.rank == o.root {
			src = dst
		}
		return d.comm.Reduce(src.Addr, src.Addr, src.Count, dtype, op, o.root, stream)
	case goccl.Broadcast:
		if !t.inPlace && t.rank != o.root {
			src = dst
		}
		return d.comm.Broadcast(src.Addr, src.Addr, src.Count, dtype, o.root, stream)
	case goccl.AllGather:
		return d.comm.AllGather(src.Addr, dst.Addr, src.Count, dtype, stream)
	case goccl.ReduceScatter:
		return d.comm.ReduceScatter(src.Addr, dst.Addr, dst.Count, dtype, op, stream)
	}
	lib := d.comm.Library()
	if r := lib.GroupStart(); r.Failed() {
		return r
	}
	failed := d.transfers(t, dtype, stream)
	if r := lib.GroupEnd(); !failed.Failed() { // also after a failure: the thread must not stay in a group
		return r
	}
	return failed
}

// transfers makes the calls of a collective that NCCL has as sends and receives.
func (d *direct) transfers(t *task, dtype libnccl.DataType, stream uintptr) libnccl.Result {
	failed := libnccl.Success
	note := func(r libnccl.Result) {
		if r.Failed() && !failed.Failed() {
			failed = r
		}
	}
	send := func(b device.Buffer, to int) { note(d.comm.Send(b.Addr, b.Count, dtype, to, stream)) }
	recv := func(b device.Buffer, from int) { note(d.comm.Recv(b.Addr, b.Count, dtype, from, stream)) }
	part := func(b device.Buffer, q int) device.Buffer { return b.Slice(q*t.count, (q+1)*t.count) }
	root := t.o.root
	switch t.o.coll {
	case goccl.AllToAll:
		for q := range t.n {
			send(part(t.src, q), q)
			recv(part(t.dst, q), q)
		}
	case goccl.Gather:
		send(t.src, root)
		for q := range t.n {
			if t.rank == root {
				recv(part(t.dst, q), q)
			}
		}
	case goccl.Scatter:
		for q := range t.n {
			if t.rank == root {
				send(part(t.src, q), q)
			}
		}
		recv(t.dst, root)
	default:
		send(t.src, (t.rank+1)%t.n)
		recv(t.dst, (t.rank+t.n-1)%t.n)
	}
	return failed
}
