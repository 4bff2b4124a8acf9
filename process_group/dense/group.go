package dense

import (
	"gorgonia.org/tensor"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	processgroup "github.com/goccl/goccl/process_group"
)

// Group is a processgroup.Group whose collectives take tensors. It is a value and
// the same sequence of operations: calls through it and through the group it
// wraps may be mixed. What it has no method for, such as Barrier, is that of the
// wrapped group.
type Group struct{ *processgroup.Group }

// Wrap returns g with methods for tensors.
func Wrap(g *processgroup.Group) Group { return Group{g} }

// On returns a view whose calls order after stream s; see processgroup.Group.On.
func (g Group) On(s device.Stream) Group { return Group{g.Group.On(s)} }

// AllReduce combines t over all ranks, in place.
func (g Group) AllReduce(t *tensor.Dense, op goccl.ReduceOp, o ...processgroup.Option) processgroup.Work {
	b, err := Buffer(t)
	if err != nil {
		return g.Refuse(goccl.AllReduce, err, o...)
	}
	return g.Group.AllReduce(b, op, o...)
}

// AllReduceInto combines src over all ranks into dst.
func (g Group) AllReduceInto(dst, src *tensor.Dense, op goccl.ReduceOp, o ...processgroup.Option) processgroup.Work {
	d, s, err := two(dst, src)
	if err != nil {
		return g.Refuse(goccl.AllReduce, err, o...)
	}
	return g.Group.AllReduceInto(d, s, op, o...)
}

// Reduce combines t over all ranks into t on root.
func (g Group) Reduce(t *tensor.Dense, op goccl.ReduceOp, root int, o ...processgroup.Option) processgroup.Work {
	b, err := Buffer(t)
	if err != nil {
		return g.Refuse(goccl.Reduce, err, o...)
	}
	return g.Group.Reduce(b, op, root, o...)
}

// Broadcast copies t of root to t of all others.
func (g Group) Broadcast(t *tensor.Dense, root int, o ...processgroup.Option) processgroup.Work {
	b, err := Buffer(t)
	if err != nil {
		return g.Refuse(goccl.Broadcast, err, o...)
	}
	return g.Group.Broadcast(b, root, o...)
}

// AllGather copies src of each rank r to dst[r] on all ranks.
func (g Group) AllGather(dst []*tensor.Dense, src *tensor.Dense, o ...processgroup.Option) processgroup.Work {
	list, b, err := many(dst, src)
	if err != nil {
		return g.Refuse(goccl.AllGather, err, o...)
	}
	return g.Group.AllGather(list, b, o...)
}

// AllGatherInto copies src of each rank to its part of dst on all ranks.
func (g Group) AllGatherInto(dst, src *tensor.Dense, o ...processgroup.Option) processgroup.Work {
	d, s, err := two(dst, src)
	if err != nil {
		return g.Refuse(goccl.AllGather, err, o...)
	}
	return g.Group.AllGatherInto(d, s, o...)
}

// ReduceScatter combines src over all ranks and leaves part r in dst of rank r.
func (g Group) ReduceScatter(dst, src *tensor.Dense, op goccl.ReduceOp, o ...processgroup.Option) processgroup.Work {
	d, s, err := two(dst, src)
	if err != nil {
		return g.Refuse(goccl.ReduceScatter, err, o...)
	}
	return g.Group.ReduceScatter(d, s, op, o...)
}

// AllToAll sends part r of src to rank r and receives its part into part r of dst.
func (g Group) AllToAll(dst, src *tensor.Dense, o ...processgroup.Option) processgroup.Work {
	d, s, err := two(dst, src)
	if err != nil {
		return g.Refuse(goccl.AllToAll, err, o...)
	}
	return g.Group.AllToAll(d, s, o...)
}

// AllToAllV is AllToAll with parts of recv[r] and send[r] elements.
func (g Group) AllToAllV(dst, src *tensor.Dense, recv, send []int, o ...processgroup.Option) processgroup.Work {
	d, s, err := two(dst, src)
	if err != nil {
		return g.Refuse(goccl.AllToAll, err, o...)
	}
	return g.Group.AllToAllV(d, s, recv, send, o...)
}

// Gather copies src of each rank r to dst[r] on root; dst is nil elsewhere.
func (g Group) Gather(dst []*tensor.Dense, src *tensor.Dense, root int, o ...processgroup.Option) processgroup.Work {
	list, b, err := many(dst, src)
	if err != nil {
		return g.Refuse(goccl.Gather, err, o...)
	}
	return g.Group.Gather(list, b, root, o...)
}

// Scatter copies src[r] of root to dst of each rank r; src is nil elsewhere.
func (g Group) Scatter(dst *tensor.Dense, src []*tensor.Dense, root int, o ...processgroup.Option) processgroup.Work {
	list, b, err := many(src, dst)
	if err != nil {
		return g.Refuse(goccl.Scatter, err, o...)
	}
	return g.Group.Scatter(b, list, root, o...)
}

// Send sends t to rank to.
func (g Group) Send(t *tensor.Dense, to int, o ...processgroup.Option) processgroup.Work {
	b, err := Buffer(t)
	if err != nil {
		return g.Refuse(goccl.SendRecv, err, o...)
	}
	return g.Group.Send(b, to, o...)
}

// Recv receives t from rank from.
func (g Group) Recv(t *tensor.Dense, from int, o ...processgroup.Option) processgroup.Work {
	b, err := Buffer(t)
	if err != nil {
		return g.Refuse(goccl.SendRecv, err, o...)
	}
	return g.Group.Recv(b, from, o...)
}

// P2P is one transfer of a batch: T goes to Peer or, with Recv, comes from it.
type P2P struct {
	T    *tensor.Dense
	Peer int
	Recv bool
}

// BatchSendRecv runs all transfers as one operation.
func (g Group) BatchSendRecv(ops []P2P, o ...processgroup.Option) processgroup.Work {
	list := make([]processgroup.P2P, len(ops))
	for i, op := range ops {
		b, err := Buffer(op.T)
		if err != nil {
			return g.Refuse(goccl.SendRecv, err, o...)
		}
		list[i] = processgroup.P2P{Buf: b, Peer: op.Peer, Recv: op.Recv}
	}
	return g.Group.BatchSendRecv(list, o...)
}

// New returns a tensor of zeros in the group's memory; see the function New.
func (g Group) New(d goccl.DType, shape ...int) (*tensor.Dense, error) {
	return New(g.Group, d, shape...)
}

func two(dst, src *tensor.Dense) (d, s device.Buffer, err error) {
	if d, err = Buffer(dst); err == nil {
		s, err = Buffer(src)
	}
	return d, s, err
}

func many(list []*tensor.Dense, one *tensor.Dense) ([]device.Buffer, device.Buffer, error) {
	b, err := Buffer(one)
	if err != nil || list == nil {
		return nil, b, err
	}
	bs := make([]device.Buffer, len(list))
	for i, t := range list {
		if bs[i], err = Buffer(t); err != nil {
			return nil, b, err
		}
	}
	return bs, b, nil
}
