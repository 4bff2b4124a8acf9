package ccl

import (
	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm"
	"github.com/goccl/goccl/device"
	processgroup "github.com/goccl/goccl/process_group"
)

// translate fills t with what op asks for. Lists of separate buffers and uneven
// parts become batches of transfers, which move each part to its place without a
// copy in between.
func translate(op *processgroup.Op, t *comm.Task, rank, size int) {
	batch := t.Batch[:0]
	if op.Coll == goccl.AllReduce && len(op.Parts) == 0 && op.Src.Device.Kind == device.Host { // the hot path
		c := &t.Call
		c.Coll, c.As, c.Op, c.Root, c.Send, c.Tag, c.Batch = op.Coll, 0, op.Redop, 0, false, 0, batch
		c.Src, c.Dst, c.Number, c.Checked = op.Src, op.Dst, op.Seq, true
		return
	}
	t.Call = comm.Call{Number: op.Seq}
	switch {
	case len(op.Parts) > 0:
		for _, p := range op.Parts {
			batch = appendCalls(batch, p, rank, size)
		}
	case len(op.Batch) > 0, len(op.DstList) > 0, len(op.SrcList) > 0, len(op.SendCounts) > 0, len(op.RecvCounts) > 0, listed(op):
		batch = appendCalls(batch, op, rank, size)
		if op.Coll != goccl.SendRecv {
			t.As = op.Coll
		}
	default:
		t.Call = plain(op)
		t.Number = op.Seq
	}
	t.Batch = batch
}

// listed reports a collective whose lists exist on the root only, so that the
// other ranks must know that it is made of transfers.
func listed(op *processgroup.Op) bool {
	return op.Coll == goccl.Gather || op.Coll == goccl.Scatter
}

func plain(op *processgroup.Op) comm.Call {
	return comm.Call{Coll: op.Coll, Op: op.Redop, Root: max(op.Root, 0), Send: op.Send, Tag: op.Tag, Src: op.Src, Dst: op.Dst, Stream: op.Stream}
}

func send(b device.Buffer, to int) comm.Call {
	return comm.Call{Coll: goccl.SendRecv, Send: true, Root: to, Src: b}
}

func recv(b device.Buffer, from int) comm.Call {
	return comm.Call{Coll: goccl.SendRecv, Root: from, Dst: b}
}

// appendCalls appends op as calls of a batch.
func appendCalls(calls []comm.Call, op *processgroup.Op, rank, size int) []comm.Call {
	switch {
	case len(op.Batch) > 0:
		for _, p := range op.Batch {
			if p.Recv {
				calls = append(calls, recv(p.Buf, p.Peer))
			} else {
				calls = append(calls, send(p.Buf, p.Peer))
			}
		}
	case op.Coll == goccl.AllGather && len(op.DstList) > 0:
		for q := range size {
			calls = append(calls, send(op.Src, q), recv(op.DstList[q], q))
		}
	case op.Coll == goccl.Gather:
		calls = append(calls, send(op.Src, op.Root))
		if rank == op.Root {
			for q := range size {
				calls = append(calls, recv(op.DstList[q], q))
			}
		}
	case op.Coll == goccl.Scatter:
		if rank == op.Root {
			for q := range size {
				calls = append(calls, send(op.SrcList[q], q))
			}
		}
		calls = append(calls, recv(op.Dst, op.Root))
	case op.Coll == goccl.AllToAll && len(op.SendCounts) > 0:
		s, r := 0, 0
		for q := range size {
			calls = append(calls, send(op.Src.Slice(s, s+op.SendCounts[q]), q), recv(op.Dst.Slice(r, r+op.RecvCounts[q]), q))
			s, r = s+op.SendCounts[q], r+op.RecvCounts[q]
		}
	default:
		calls = append(calls, plain(op))
	}
	return calls
}
