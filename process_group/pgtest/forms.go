package pgtest

import (
	"context"
	"errors"

	"github.com/goccl/goccl/device"
	processgroup "github.com/goccl/goccl/process_group"
)

func allReduceForm(ctx context.Context, g *processgroup.Group, c *shape) error {
	if !c.reducible() {
		return nil
	}
	in := c.operands(g.Rank(), c.count)
	out := in
	if !c.inPlace {
		out = c.blank(g.Rank(), c.count)
	}
	if err := g.AllReduceInto(c.buf(g, out), c.buf(g, in), c.op(g.Rank())).Wait(ctx); err != nil {
		return err
	}
	err := c.reducedAt(out, c.count, 0)
	if !c.inPlace {
		err = errors.Join(err, same(in, c.operands(g.Rank(), c.count), c.count))
	}
	return err
}

// reducedAt compares count elements of v with the reduction from element first on.
func (c *shape) reducedAt(v vec, count, first int) error {
	for i := range count {
		if err := reduced(c.dtype, c.redop, c.ranks, first+i, c.salt).check(v, i); err != nil {
			return err
		}
	}
	return nil
}

func reduceForm(ctx context.Context, g *processgroup.Group, c *shape) error {
	if !c.reducible() {
		return nil
	}
	b := c.operands(g.Rank(), c.count)
	if err := g.Reduce(c.buf(g, b), c.op(g.Rank()), c.root).Wait(ctx); err != nil {
		return err
	}
	if g.Rank() != c.root {
		return same(b, c.operands(g.Rank(), c.count), c.count)
	}
	return c.reducedAt(b, c.count, 0)
}

func broadcastForm(ctx context.Context, g *processgroup.Group, c *shape) error {
	b := c.patterns(g.Rank(), c.count)
	if err := g.Broadcast(c.buf(g, b), c.root).Wait(ctx); err != nil {
		return err
	}
	return c.moved(b, 0, c.count, c.root, 0)
}

func allGatherForm(ctx context.Context, g *processgroup.Group, c *shape) error {
	in := c.patterns(g.Rank(), c.count)
	out, list := c.list(g, in)
	if err := g.AllGather(list, c.buf(g, in)).Wait(ctx); err != nil {
		return err
	}
	return c.gathered(out)
}

// list returns one blank vector for each rank; in place, the own one is own.
func (c *shape) list(g *processgroup.Group, own vec) ([]vec, []device.Buffer) {
	out := make([]vec, c.ranks)
	list := make([]device.Buffer, c.ranks)
	for r := range out {
		out[r] = c.blank(g.Rank(), c.count)
		if c.inPlace && r == g.Rank() {
			out[r] = own
		}
		list[r] = c.buf(g, out[r])
	}
	return out, list
}

func (c *shape) gathered(out []vec) error {
	for r := range out {
		if err := c.moved(out[r], 0, c.count, r, 0); err != nil {
			return err
		}
	}
	return nil
}

func allGatherIntoForm(ctx context.Context, g *processgroup.Group, c *shape) error {
	out := c.blank(g.Rank(), c.ranks*c.count)
	in := c.patterns(g.Rank(), c.count)
	src := c.buf(g, in)
	if c.inPlace {
		for i := range c.count {
			out.set(g.Rank()*c.count+i, in.bits(i))
		}
		src = c.buf(g, out).Slice(g.Rank()*c.count, (g.Rank()+1)*c.count)
	}
	if err := g.AllGatherInto(c.buf(g, out), src).Wait(ctx); err != nil {
		return err
	}
	for r := range c.ranks {
		if err := c.moved(out, r*c.count, c.count, r, 0); err != nil {
			return err
		}
	}
	return nil
}

func reduceScatterForm(ctx context.Context, g *processgroup.Group, c *shape) error {
	if !c.reducible() {
		return nil
	}
	me, total := g.Rank(), c.ranks*c.count
	in := c.operands(me, total)
	if c.inPlace {
		dst := c.buf(g, in).Slice(me*c.count, (me+1)*c.count)
		if err := g.ReduceScatter(dst, c.buf(g, in), c.op(me)).Wait(ctx); err != nil {
			return err
		}
		out := newVec(c.dtype, c.count, 0)
		for i := range c.count {
			out.set(i, in.bits(me*c.count+i))
		}
		return c.reducedAt(out, c.count, me*c.count)
	}
	out := c.blank(me, c.count)
	if err := g.ReduceScatter(c.buf(g, out), c.buf(g, in), c.op(me)).Wait(ctx); err != nil {
		return err
	}
	return errors.Join(c.reducedAt(out, c.count, me*c.count), same(in, c.operands(me, total), total))
}

func allToAllForm(ctx context.Context, g *processgroup.Group, c *shape) error {
	in := c.patterns(g.Rank(), c.ranks*c.count)
	out := c.blank(g.Rank(), c.ranks*c.count)
	if err := g.AllToAll(c.buf(g, out), c.buf(g, in)).Wait(ctx); err != nil {
		return err
	}
	for r := range c.ranks {
		if err := c.moved(out, r*c.count, c.count, r, g.Rank()*c.count); err != nil {
			return err
		}
	}
	return nil
}

// between is how much rank a sends rank b in the uneven exchange; some pairs
// exchange nothing.
func (c *shape) between(a, b int) int {
	return c.count * ((a + 2*b) % 3) / 2
}

func allToAllVForm(ctx context.Context, g *processgroup.Group, c *shape) error {
	me := g.Rank()
	send, recv := make([]int, c.ranks), make([]int, c.ranks)
	sent, got := 0, 0
	for r := range c.ranks {
		send[r], recv[r] = c.between(me, r), c.between(r, me)
		sent, got = sent+send[r], got+recv[r]
	}
	in, out := c.patterns(me, sent), c.blank(me, got)
	if err := g.AllToAllV(c.buf(g, out), c.buf(g, in), recv, send).Wait(ctx); err != nil {
		return err
	}
	at := 0
	for r := range c.ranks {
		first := 0
		for b := range me {
			first += c.between(r, b)
		}
		if err := c.moved(out, at, recv[r], r, first); err != nil {
			return err
		}
		at += recv[r]
	}
	return nil
}

func gatherForm(ctx context.Context, g *processgroup.Group, c *shape) error {
	in := c.patterns(g.Rank(), c.count)
	if g.Rank() != c.root {
		return g.Gather(nil, c.buf(g, in), c.root).Wait(ctx)
	}
	out, list := c.list(g, in)
	if err := g.Gather(list, c.buf(g, in), c.root).Wait(ctx); err != nil {
		return err
	}
	return c.gathered(out)
}

func scatterForm(ctx context.Context, g *processgroup.Group, c *shape) error {
	out := c.blank(g.Rank(), c.count)
	var list []device.Buffer
	if g.Rank() == c.root {
		for r := range c.ranks {
			part := c.patterns(r, c.count)
			if c.inPlace && r == c.root {
				out = part
			}
			list = append(list, c.buf(g, part))
		}
	}
	if err := g.Scatter(c.buf(g, out), list, c.root).Wait(ctx); err != nil {
		return err
	}
	return c.moved(out, 0, c.count, g.Rank(), 0)
}

// sendRecvForm passes a message around: even ranks send first, odd ones and the
// last receive first, so that no two wait for each other.
func sendRecvForm(ctx context.Context, g *processgroup.Group, c *shape) error {
	if c.ranks == 1 {
		return nil
	}
	me, next, before := g.Rank(), (g.Rank()+1)%c.ranks, (g.Rank()+c.ranks-1)%c.ranks
	in, out := c.patterns(me, c.count), c.blank(me, c.count)
	tag := processgroup.Tag(uint32(c.salt))
	var first, second processgroup.Work
	if me%2 == 0 && me != c.ranks-1 {
		first = g.Send(c.buf(g, in), next, tag)
		second = g.Recv(c.buf(g, out), before, tag)
	} else {
		first = g.Recv(c.buf(g, out), before, tag)
		second = g.Send(c.buf(g, in), next, tag)
	}
	if err := processgroup.WaitAll(ctx, first, second); err != nil {
		return err
	}
	return c.moved(out, 0, c.count, before, 0)
}

// batchForm exchanges a message with every rank, itself too, in one batch.
func batchForm(ctx context.Context, g *processgroup.Group, c *shape) error {
	me := g.Rank()
	out := make([]vec, c.ranks)
	var ops []processgroup.P2P
	for r := range c.ranks {
		out[r] = c.blank(me, c.between(r, me))
		ops = append(ops, processgroup.P2P{Buf: c.buf(g, out[r]), Peer: r, Recv: true},
			processgroup.P2P{Buf: c.buf(g, c.patterns(me, c.between(me, r))), Peer: r})
	}
	if err := g.BatchSendRecv(ops).Wait(ctx); err != nil {
		return err
	}
	for r := range out {
		if err := c.moved(out[r], 0, c.between(r, me), r, 0); err != nil {
			return err
		}
	}
	return nil
}
