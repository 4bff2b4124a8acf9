package processgroup

import (
	"fmt"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
)

// AllReduce combines b over all ranks, in place: afterwards every rank holds the
// same bits.
func (g *Group) AllReduce(b device.Buffer, op goccl.ReduceOp, o ...Option) Work {
	s := g.settings(o)
	if !fine(&s, &b, op) {
		if err := checkAllReduce(&s, b, b, op); err != nil {
			return g.refuse(goccl.AllReduce, &s, err)
		}
	}
	x, w := g.call(goccl.AllReduce, &s)
	if x == nil {
		return w
	}
	x.Redop, x.Dst, x.Src = op, b, b
	return g.launch(x)
}

// AllReduceInto combines src over all ranks into dst, which is as long as src and
// may be the same memory.
func (g *Group) AllReduceInto(dst, src device.Buffer, op goccl.ReduceOp, o ...Option) Work {
	s := g.settings(o)
	if !fineInto(&s, &dst, &src, op) {
		if err := checkAllReduce(&s, dst, src, op); err != nil {
			return g.refuse(goccl.AllReduce, &s, err)
		}
	}
	x, w := g.call(goccl.AllReduce, &s)
	if x == nil {
		return w
	}
	x.Redop, x.Dst, x.Src = op, dst, src
	return g.launch(x)
}

func checkAllReduce(s *settings, dst, src device.Buffer, op goccl.ReduceOp) error {
	if err := checkBuffers(s, src, dst); err != nil {
		return err
	}
	if dst.Count != src.Count {
		return fmt.Errorf("%w: output of %d elements for an input of %d", goccl.ErrInvalid, dst.Count, src.Count)
	}
	if err := checkAlias(dst, src); err != nil {
		return err
	}
	if err := checkPlain(s); err != nil {
		return err
	}
	return checkRedop(op, src.DType)
}

// Reduce combines b over all ranks into b on root, a rank of the group. The other
// ranks keep their b as it was.
func (g *Group) Reduce(b device.Buffer, op goccl.ReduceOp, root int, o ...Option) Work {
	s := g.settings(o)
	err := g.checkRooted(&s, b, root)
	if err == nil {
		err = checkRedop(op, b.DType)
	}
	if err != nil {
		return g.refuse(goccl.Reduce, &s, err)
	}
	x, w := g.call(goccl.Reduce, &s)
	if x == nil {
		return w
	}
	x.Redop, x.Root, x.Src = op, root, b
	if root == g.cfg.Rank {
		x.Dst = b
	}
	return g.launch(x)
}

// Broadcast copies b of root, a rank of the group, to b of all others.
func (g *Group) Broadcast(b device.Buffer, root int, o ...Option) Work {
	s := g.settings(o)
	if err := g.checkRooted(&s, b, root); err != nil {
		return g.refuse(goccl.Broadcast, &s, err)
	}
	x, w := g.call(goccl.Broadcast, &s)
	if x == nil {
		return w
	}
	x.Root, x.Src, x.Dst = root, b, b
	return g.launch(x)
}

func (c *core) checkRooted(s *settings, b device.Buffer, root int) error {
	if err := checkBuffers(s, b); err != nil {
		return err
	}
	if err := checkPlain(s); err != nil {
		return err
	}
	return c.checkRank(root)
}

// AllGather copies src of each rank r to dst[r] on all ranks. All are equally
// long; dst[Rank()] may be src.
func (g *Group) AllGather(dst []device.Buffer, src device.Buffer, o ...Option) Work {
	s := g.settings(o)
	err := g.checkList(&s, dst, src)
	if err == nil {
		err = checkPlain(&s)
	}
	if err != nil {
		return g.refuse(goccl.AllGather, &s, err)
	}
	x, w := g.call(goccl.AllGather, &s)
	if x == nil {
		return w
	}
	x.Src, x.DstList = src, append(x.DstList, dst...)
	return g.launch(x)
}

// AllGatherInto copies src of each rank to its part of dst on all ranks:
// dst.Count is Size() times src.Count. src may be the own part of dst.
func (g *Group) AllGatherInto(dst, src device.Buffer, o ...Option) Work {
	s := g.settings(o)
	if err := g.checkParts(&s, dst, src); err != nil {
		return g.refuse(goccl.AllGather, &s, err)
	}
	x, w := g.call(goccl.AllGather, &s)
	if x == nil {
		return w
	}
	x.Dst, x.Src = dst, src
	return g.launch(x)
}

// ReduceScatter combines src over all ranks and leaves part r of the result in dst
// of rank r: src.Count is Size() times dst.Count. dst may be the own part of src.
func (g *Group) ReduceScatter(dst, src device.Buffer, op goccl.ReduceOp, o ...Option) Work {
	s := g.settings(o)
	err := g.checkParts(&s, src, dst)
	if err == nil {
		err = checkRedop(op, src.DType)
	}
	if err != nil {
		return g.refuse(goccl.ReduceScatter, &s, err)
	}
	x, w := g.call(goccl.ReduceScatter, &s)
	if x == nil {
		return w
	}
	x.Redop, x.Dst, x.Src = op, dst, src
	return g.launch(x)
}

func (c *core) checkParts(s *settings, large, small device.Buffer) error {
	if err := checkBuffers(s, small, large); err != nil {
		return err
	}
	// Divided rather than multiplied: a product may overflow.
	if large.Count%c.cfg.Size != 0 || large.Count/c.cfg.Size != small.Count {
		return fmt.Errorf("%w: %d elements are not %d ranks times %d", goccl.ErrInvalid, large.Count, c.cfg.Size, small.Count)
	}
	if err := checkPlain(s); err != nil {
		return err
	}
	return c.checkPart(large, small)
}

// AllToAll sends part r of src to rank r and receives its part into part r of
// dst. Both are equally long, a multiple of Size(), and apart.
func (g *Group) AllToAll(dst, src device.Buffer, o ...Option) Work {
	s := g.settings(o)
	err := checkExchange(&s, dst, src)
	if err == nil && (dst.Count != src.Count || src.Count%g.cfg.Size != 0) {
		err = fmt.Errorf("%w: input of %d and output of %d elements for %d ranks; they must be equal and divisible", goccl.ErrInvalid, src.Count, dst.Count, g.cfg.Size)
	}
	if err != nil {
		return g.refuse(goccl.AllToAll, &s, err)
	}
	x, w := g.call(goccl.AllToAll, &s)
	if x == nil {
		return w
	}
	x.Dst, x.Src = dst, src
	return g.launch(x)
}

// AllToAllV is AllToAll with parts of any length, 0 too: recv[r] elements come
// from rank r and send[r] go to it. The parts fill their buffers, which are apart.
func (g *Group) AllToAllV(dst, src device.Buffer, recv, send []int, o ...Option) Work {
	s := g.settings(o)
	if err := g.checkAllToAllV(&s, dst, src, recv, send); err != nil {
		return g.refuse(goccl.AllToAll, &s, err)
	}
	x, w := g.call(goccl.AllToAll, &s)
	if x == nil {
		return w
	}
	x.Dst, x.Src = dst, src
	x.RecvCounts, x.SendCounts = append(x.RecvCounts, recv...), append(x.SendCounts, send...)
	return g.launch(x)
}

func (c *core) checkAllToAllV(s *settings, dst, src device.Buffer, recv, send []int) error {
	if err := checkExchange(s, dst, src); err != nil {
		return err
	}
	if err := c.checkCounts("receive", recv, dst); err != nil {
		return err
	}
	if err := c.checkCounts("send", send, src); err != nil {
		return err
	}
	if me := c.cfg.Rank; send[me] != recv[me] {
		return fmt.Errorf("%w: rank %d sends itself %d elements and receives %d", goccl.ErrInvalid, me, send[me], recv[me])
	}
	return nil
}

func checkExchange(s *settings, dst, src device.Buffer) error {
	if err := checkBuffers(s, src, dst); err != nil {
		return err
	}
	if dst.Overlaps(src) {
		return fmt.Errorf("%w: input and output of an all-to-all overlap; it has no form in place", goccl.ErrInvalid)
	}
	return checkPlain(s)
}

// Gather copies src of each rank r to dst[r] on root. All are equally long; dst
// is read on root only, where dst[root] may be src.
func (g *Group) Gather(dst []device.Buffer, src device.Buffer, root int, o ...Option) Work {
	s := g.settings(o)
	err := g.checkRooted(&s, src, root)
	if err == nil && root == g.cfg.Rank {
		err = g.checkList(&s, dst, src)
	}
	if err != nil {
		return g.refuse(goccl.Gather, &s, err)
	}
	x, w := g.call(goccl.Gather, &s)
	if x == nil {
		return w
	}
	x.Root, x.Src = root, src
	if root == g.cfg.Rank {
		x.DstList = append(x.DstList, dst...)
	}
	return g.launch(x)
}

// Scatter copies src[r] of root to dst of each rank r. All are equally long; src
// is read on root only, where src[root] may be dst.
func (g *Group) Scatter(dst device.Buffer, src []device.Buffer, root int, o ...Option) Work {
	s := g.settings(o)
	err := g.checkRooted(&s, dst, root)
	if err == nil && root == g.cfg.Rank {
		err = g.checkList(&s, src, dst)
	}
	if err != nil {
		return g.refuse(goccl.Scatter, &s, err)
	}
	x, w := g.call(goccl.Scatter, &s)
	if x == nil {
		return w
	}
	x.Root, x.Dst = root, dst
	if root == g.cfg.Rank {
		x.SrcList = append(x.SrcList, src...)
	}
	return g.launch(x)
}
