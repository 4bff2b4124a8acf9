package nccl

import (
	"fmt"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	processgroup "github.com/goccl/goccl/process_group"
	"github.com/goccl/goccl/process_group/backend/nccl/libnccl"
)

// function is one of NCCL's.
type function uint8

const (
	allReduce function = iota
	reduce
	broadcast
	allGather
	reduceScatter
	send
	recv
)

// call is a call of one function, as data: what an operation asks for is decided
// here, without a library or a device, and carried out elsewhere.
type call struct {
	fn    function
	send  uintptr
	recv  uintptr
	count int // elements, as the function counts them
	dtype libnccl.DataType
	op    libnccl.RedOp
	peer  int     // root, or the other side of a transfer
	scale float32 // of a PreMulSum of elements of elem, which makes op at the time of the call
	elem  goccl.DType
}

// translator turns operations of one rank into calls.
type translator struct {
	rank, size int
	id         device.ID
	word       uintptr // memory of one element, for barriers
}

// translate appends the calls that op asks for; several become one group. Parts of
// no elements are left out on both sides alike. It refuses memory that NCCL cannot
// reach.
func (t *translator) translate(calls []call, op *processgroup.Op) ([]call, error) {
	if len(op.Parts) == 0 {
		return t.one(calls, op)
	}
	var err error
	for _, p := range op.Parts {
		if calls, err = t.one(calls, p); err != nil {
			return calls, err
		}
	}
	return calls, nil
}

func (t *translator) one(calls []call, op *processgroup.Op) ([]call, error) {
	if err := t.check(op); err != nil {
		return calls, err
	}
	switch {
	case len(op.Batch) > 0:
		return t.batch(calls, op.Batch)
	case op.Coll == goccl.SendRecv && op.Root < 0: // an empty batch
		return calls, nil
	case op.Coll == goccl.SendRecv && op.Send:
		return t.send(calls, op.Src, op.Root)
	case op.Coll == goccl.SendRecv:
		return t.recv(calls, op.Dst, op.Root)
	case op.Coll == goccl.Barrier:
		return append(calls, call{fn: allReduce, send: t.word, recv: t.word, count: 1, dtype: libnccl.Byte}), nil
	case op.Coll.Reduces():
		return t.reduction(calls, op)
	}
	return t.movement(calls, op)
}

// reduction is the collectives that combine.
func (t *translator) reduction(calls []call, op *processgroup.Op) ([]call, error) {
	dtype, err := libnccl.TypeOf(op.Src.DType)
	if err != nil {
		return calls, err
	}
	c := call{send: op.Src.Addr, recv: op.Dst.Addr, count: op.Src.Count, dtype: dtype}
	if scale, scaled := op.Redop.Scale(); scaled {
		c.scale, c.elem = scale, op.Src.DType
	} else if c.op, err = libnccl.OpOf(op.Redop); err != nil {
		return calls, err
	}
	switch op.Coll {
	case goccl.AllReduce:
		c.fn = allReduce
	case goccl.Reduce:
		c.fn, c.peer = reduce, op.Root
	case goccl.ReduceScatter:
		c.fn, c.count = reduceScatter, op.Dst.Count
	}
	return keep(calls, c), nil
}

// movement is the collectives that only move. Lists of separate buffers and
// uneven parts become transfers, which put each part in its place.
func (t *translator) movement(calls []call, op *processgroup.Op) ([]call, error) {
	switch {
	case op.Coll == goccl.Broadcast:
		dtype, err := libnccl.MovingTypeOf(op.Src.DType)
		return keep(calls, call{fn: broadcast, send: op.Src.Addr, recv: op.Dst.Addr, count: op.Src.Count, dtype: dtype, peer: op.Root}), err
	case op.Coll == goccl.AllGather && len(op.DstList) == 0:
		dtype, err := libnccl.MovingTypeOf(op.Src.DType)
		return keep(calls, call{fn: allGather, send: op.Src.Addr, recv: op.Dst.Addr, count: op.Src.Count, dtype: dtype}), err
	case op.Coll == goccl.AllGather:
		return t.exchange(calls, func(q int) (device.Buffer, device.Buffer) { return op.Src, op.DstList[q] })
	case op.Coll == goccl.AllToAll && len(op.SendCounts) > 0:
		s, r := 0, 0
		return t.exchange(calls, func(q int) (out, in device.Buffer) {
			out, in = op.Src.Slice(s, s+op.SendCounts[q]), op.Dst.Slice(r, r+op.RecvCounts[q])
			s, r = s+op.SendCounts[q], r+op.RecvCounts[q]
			return out, in
		})
	case op.Coll == goccl.AllToAll:
		n := op.Src.Count / t.size
		return t.exchange(calls, func(q int) (device.Buffer, device.Buffer) {
			return op.Src.Slice(q*n, (q+1)*n), op.Dst.Slice(q*n, (q+1)*n)
		})
	case op.Coll == goccl.Gather:
		return t.gather(calls, op)
	case op.Coll == goccl.Scatter:
		return t.scatter(calls, op)
	}
	return calls, fmt.Errorf("%w: NCCL has no %v", goccl.ErrUnsupported, op.Coll)
}

// exchange sends one buffer to and receives one from every rank.
func (t *translator) exchange(calls []call, with func(q int) (out, in device.Buffer)) ([]call, error) {
	var err error
	for q := range t.size {
		out, in := with(q)
		if q == t.rank && out.Addr == in.Addr {
			continue // in place
		}
		if calls, err = t.send(calls, out, q); err == nil {
			calls, err = t.recv(calls, in, q)
		}
		if err != nil {
			return calls, err
		}
	}
	return calls, nil
}

func (t *translator) gather(calls []call, op *processgroup.Op) ([]call, error) {
	inPlace := t.rank == op.Root && op.DstList[t.rank].Addr == op.Src.Addr
	var err error
	if !inPlace {
		if calls, err = t.send(calls, op.Src, op.Root); err != nil {
			return calls, err
		}
	}
	if t.rank != op.Root {
		return calls, nil
	}
	for q, in := range op.DstList {
		if q == t.rank && inPlace {
			continue
		}
		if calls, err = t.recv(calls, in, q); err != nil {
			return calls, err
		}
	}
	return calls, nil
}

func (t *translator) scatter(calls []call, op *processgroup.Op) ([]call, error) {
	inPlace := t.rank == op.Root && op.SrcList[t.rank].Addr == op.Dst.Addr
	var err error
	if t.rank == op.Root {
		for q, out := range op.SrcList {
			if q == t.rank && inPlace {
				continue
			}
			if calls, err = t.send(calls, out, q); err != nil {
				return calls, err
			}
		}
	}
	if inPlace {
		return calls, nil
	}
	return t.recv(calls, op.Dst, op.Root)
}

func (t *translator) batch(calls []call, batch []processgroup.P2P) ([]call, error) {
	var err error
	for _, p := range batch {
		if p.Recv {
			calls, err = t.recv(calls, p.Buf, p.Peer)
		} else {
			calls, err = t.send(calls, p.Buf, p.Peer)
		}
		if err != nil {
			return calls, err
		}
	}
	return calls, nil
}

func (t *translator) send(calls []call, b device.Buffer, to int) ([]call, error) {
	dtype, err := libnccl.MovingTypeOf(b.DType)
	return keep(calls, call{fn: send, send: b.Addr, count: b.Count, dtype: dtype, peer: to}), err
}

func (t *translator) recv(calls []call, b device.Buffer, from int) ([]call, error) {
	dtype, err := libnccl.MovingTypeOf(b.DType)
	return keep(calls, call{fn: recv, recv: b.Addr, count: b.Count, dtype: dtype, peer: from}), err
}

// keep appends c unless it moves nothing, on all ranks alike.
func keep(calls []call, c call) []call {
	if c.count == 0 {
		return calls
	}
	return append(calls, c)
}

// check refuses buffers that do not lie on the group's GPU, and operations without
// a stream.
func (t *translator) check(op *processgroup.Op) error {
	if op.Coll == goccl.Barrier {
		return nil
	}
	any := false
	for _, b := range [...]*device.Buffer{&op.Src, &op.Dst} {
		if err := t.reach(b, &any); err != nil {
			return err
		}
	}
	for _, list := range [...][]device.Buffer{op.SrcList, op.DstList} {
		for i := range list {
			if err := t.reach(&list[i], &any); err != nil {
				return err
			}
		}
	}
	for i := range op.Batch {
		if err := t.reach(&op.Batch[i].Buf, &any); err != nil {
			return err
		}
	}
	if any && op.Stream == nil {
		return fmt.Errorf("%w: %s on %v memory names no stream; call through g.On(stream) or pass OnStream", goccl.ErrInvalid, op.Name(), t.id)
	}
	return nil
}

// reach refuses b unless it is empty or lies on the group's GPU.
func (t *translator) reach(b *device.Buffer, any *bool) error {
	switch {
	case b.Count == 0:
		return nil
	case b.Device.Kind == device.Host:
		return fmt.Errorf("%w: backend nccl moves memory of %v and was given host memory; use a group of backend ccl for it, or copy it to the device",
			goccl.ErrUnsupported, t.id)
	case b.Device != t.id:
		return fmt.Errorf("%w: the buffer lies on %v and this rank's NCCL communicator is on %v", goccl.ErrInvalid, b.Device, t.id)
	}
	*any = true
	return nil
}
