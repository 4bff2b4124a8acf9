package exec

import (
	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/plan"
	"github.com/goccl/goccl/internal/simd"
)

// The fused form of the one-shot AllReduce over scratch does in one function what
// its Program says in two instructions: push the input into every peer's slot,
// then reduce all slots in rank order. It uses the same slots, bank and epoch, so
// a rank that runs the Program and one that runs this form work together. A test
// holds the two against each other bit by bit.

// fusable reports whether p is that Program.
func fusable(p *plan.Program) bool {
	if p.Key.Algo != goccl.OneShot || (p.Key.Coll != goccl.AllReduce && p.Key.Coll != goccl.Barrier) || len(p.Rows) != 1 || len(p.Code) != 2 {
		return false
	}
	push, last := &p.Code[0], &p.Code[1]
	if push.Op != plan.MOVE || last.Op != plan.MOVE || int(push.NDst) != p.NRanks-1 || int(last.NSrc) != p.NRanks || last.NDst != 1 {
		return false
	}
	for _, o := range p.Opnds[push.Dst : int(push.Dst)+int(push.NDst)] {
		if o.Kind != plan.PeerScratch {
			return false
		}
	}
	for q, o := range p.Opnds[last.Src : int(last.Src)+int(last.NSrc)] {
		if (q == p.Rank) != (o.Kind == plan.In) || q != p.Rank && (o.Kind != plan.Scratch || p.Eval(o.Slot, 0, 0) != q) {
			return false
		}
	}
	return true
}

func (r *Run) stepFused() (finished, moved bool, err error) {
	if r.err != nil {
		return false, false, r.err
	}
	if !r.pushed {
		r.push()
		moved = true
	}
	c, epoch := &r.x.cfg, r.x.epochs[0]
	self, bank, want := c.Regions[c.Rank], epoch%plan.Banks, uint64(uint32(r.args.Unit))|uint64(r.args.Sig)<<32
	for ; r.next < c.Size; r.next++ {
		if r.next == c.Rank {
			continue
		}
		off := c.Layout.slot(0, bank, r.next)
		if self.Word(off+slotFlag).Load() != epoch+1 {
			r.word = c.Bells[c.Rank]
			return false, moved, nil
		}
		if meta := self.Get(off + slotMeta); meta != want {
			r.err = &Clash{Peer: r.next, Sig: uint32(meta >> 32)}
			return false, moved, r.err
		}
	}
	if r.args.Unit > 0 {
		r.reduceSlots(bank)
	}
	r.x.epochs[0]++
	return true, true, nil
}

// push puts the input into this rank's slot at every peer, the next rank first.
func (r *Run) push() {
	r.pushed = true
	c, epoch := &r.x.cfg, r.x.epochs[0]
	in, n, meta := r.args.In, int(r.args.Unit), uint64(uint32(r.args.Unit))|uint64(r.args.Sig)<<32
	if r.args.Scaled && n > 0 {
		d := r.b.Prog.Key.DType
		simd.Scale(d, r.x.temp.Addr, in, n/d.Size(), r.args.Scale)
		in = r.x.temp.Addr
	}
	off := c.Layout.slot(0, epoch%plan.Banks, c.Rank)
	for i := 1; i < c.Size; i++ {
		q := c.Rank + i
		if q >= c.Size {
			q -= c.Size
		}
		m := c.Regions[q]
		if n > 0 {
			simd.Copy(m.Addr(off+slotData), in, n)
		}
		m.Put(off+slotMeta, meta)
		m.Publish(off+slotFlag, epoch+1)
		r.x.ring(int32(q))
	}
}

// reduceSlots forms the result in rank order.
func (r *Run) reduceSlots(bank uint64) {
	c, key := &r.x.cfg, &r.b.Prog.Key
	in, n := r.args.In, int(r.args.Unit)/key.DType.Size()
	if r.args.Scaled {
		in = r.x.temp.Addr // scaled by push, and nothing has used it since
	}
	r.srcs = r.srcs[:0]
	for q := range c.Size {
		if q == c.Rank {
			r.srcs = append(r.srcs, in)
		} else {
			r.srcs = append(r.srcs, c.Regions[c.Rank].Addr(c.Layout.slot(0, bank, q)+slotData))
		}
	}
	simd.Reduce(key.DType, key.Op, r.args.Out, r.srcs, n)
	if key.Op == goccl.Avg {
		simd.Divide(key.DType, r.args.Out, r.args.Out, n, c.Size)
	}
}

// Unblocked reports whether what the operation was last blocked on has happened.
// It is the cheapest look there is; true may be said too often, never too seldom.
func (r *Run) Unblocked() bool {
	if !r.b.fused || !r.pushed || r.next >= r.x.cfg.Size {
		return true
	}
	c, epoch := &r.x.cfg, r.x.epochs[0]
	return c.Regions[c.Rank].Word(c.Layout.slot(0, epoch%plan.Banks, r.next)+slotFlag).Load() == epoch+1
}
