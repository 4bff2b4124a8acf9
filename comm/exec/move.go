package exec

import (
	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/plan"
	"github.com/goccl/goccl/comm/plan/machine"
	"github.com/goccl/goccl/internal/simd"
)

// blockBytes is how much of a slice is reduced before it is copied to further
// destinations: what stays in a first-level cache.
const blockBytes = 16 << 10

// Move implements machine.Domain: one slice, when all its sources have arrived
// and all its destinations are free.
func (r *Run) Move(l *machine.Lane, m *machine.Move) bool {
	if r.err != nil || !r.ready(l, m) {
		return false
	}
	if m.Bytes > 0 {
		r.base = r.base[:0]
		for i := range m.Srcs {
			r.base = append(r.base, r.source(l, &m.Srcs[i]))
		}
		r.transfer(l, m, r.base)
	}
	r.publishMove(l, m)
	return true
}

// ready reports whether the slice can move, and checks what has arrived.
func (r *Run) ready(l *machine.Lane, m *machine.Move) bool {
	lo := int(r.b.Prog.Rows[l.Channel].ConnLo)
	for i := range m.Srcs {
		switch o := &m.Srcs[i]; o.Kind {
		case plan.FifoRecv:
			f := r.b.recvs[lo+int(o.Conn)]
			if !f.Ready() {
				r.word = f.Bell()
				return false
			}
			if _, n, sig := f.Peek(); sig != r.args.Sig || n != m.Bytes {
				r.err = &Clash{Peer: int(r.b.Prog.Conns[lo+int(o.Conn)].Peer), Sig: sig}
				return false
			}
		case plan.Scratch:
			if !r.arrived(l, l.Ref(o).Slot, m.Bytes) {
				return false
			}
		}
	}
	for i := range m.Dsts {
		if o := &m.Dsts[i]; o.Kind == plan.FifoSend && !r.b.sends[lo+int(o.Conn)].Ready() {
			r.word = r.b.sends[lo+int(o.Conn)].CreditBell()
			return false
		}
	}
	return true
}

// arrived reports whether a peer has written its scratch slot of this epoch.
func (r *Run) arrived(l *machine.Lane, peer, bytes int) bool {
	c, epoch := &r.x.cfg, r.x.epochs[l.Channel]
	m := c.Regions[c.Rank]
	off := c.Layout.slot(l.Channel, epoch%plan.Banks, peer)
	if m.Word(off+slotFlag).Load() != epoch+1 {
		r.word = c.Bells[c.Rank]
		return false
	}
	if meta := m.Get(off + slotMeta); meta != uint64(uint32(bytes))|uint64(r.args.Sig)<<32 {
		r.err = &Clash{Peer: peer, Sig: uint32(meta >> 32)}
		return false
	}
	return true
}

func (r *Run) source(l *machine.Lane, o *plan.Operand) uintptr {
	ref := l.Ref(o)
	switch o.Kind {
	case plan.In:
		return r.args.In + uintptr(ref.Off)
	case plan.FifoRecv:
		addr, _, _ := r.b.recvs[int(r.b.Prog.Rows[l.Channel].ConnLo)+ref.Index].Peek()
		return addr
	case plan.Scratch:
		c := &r.x.cfg
		return c.Regions[c.Rank].Addr(c.Layout.slot(l.Channel, r.x.epochs[l.Channel]%plan.Banks, ref.Slot) + slotData)
	default: // PeerIn
		return r.ins[ref.Index] + uintptr(ref.Off)
	}
}

func (r *Run) destination(l *machine.Lane, o *plan.Operand) uintptr {
	ref := l.Ref(o)
	switch o.Kind {
	case plan.Out:
		return r.args.Out + uintptr(ref.Off)
	case plan.FifoSend:
		return r.b.sends[int(r.b.Prog.Rows[l.Channel].ConnLo)+ref.Index].Payload()
	case plan.PeerScratch:
		c := &r.x.cfg
		return c.Regions[ref.Index].Addr(c.Layout.slot(l.Channel, r.x.epochs[l.Channel]%plan.Banks, ref.Slot) + slotData)
	default: // PeerOut
		return r.outs[ref.Index] + uintptr(ref.Off)
	}
}

// transfer forms the result in the first destination, block by block, and copies
// each block to the others while it is in cache. One source and nothing to
// compute is a copy to each destination.
func (r *Run) transfer(l *machine.Lane, m *machine.Move, base []uintptr) {
	key := &r.b.Prog.Key
	pre, post := m.Flags&plan.Pre != 0 && r.args.Scaled, m.Flags&plan.Post != 0 && key.Op == goccl.Avg
	if len(base) == 1 && !pre && !post {
		for i := range m.Dsts {
			if d := r.destination(l, &m.Dsts[i]); d != base[0] {
				simd.Copy(d, base[0], m.Bytes)
			}
		}
		return
	}
	size := key.DType.Size()
	first := r.destination(l, &m.Dsts[0])
	for off := 0; off < m.Bytes; off += blockBytes {
		n := min(blockBytes, m.Bytes-off)
		d := first + uintptr(off)
		simd.Reduce(key.DType, key.Op, d, r.block(m, base, off, n, pre), n/size)
		if post {
			simd.Divide(key.DType, d, d, n/size, r.x.cfg.Size)
		}
		for i := 1; i < len(m.Dsts); i++ {
			if e := r.destination(l, &m.Dsts[i]) + uintptr(off); e != d {
				simd.Copy(e, d, n)
			}
		}
	}
}

// block returns the sources of n bytes at off. This rank's input, of which a
// move has one at most, is scaled into a block of its own when pre is set.
func (r *Run) block(m *machine.Move, base []uintptr, off, n int, pre bool) []uintptr {
	r.srcs = r.srcs[:0]
	for i, a := range base {
		a += uintptr(off)
		if pre && m.Srcs[i].Kind == plan.In {
			d := r.b.Prog.Key.DType
			simd.Scale(d, r.x.temp.Addr, a, n/d.Size(), r.args.Scale)
			a = r.x.temp.Addr
		}
		r.srcs = append(r.srcs, a)
	}
	return r.srcs
}

// publishMove tells the peers: slots are full, slots are free.
func (r *Run) publishMove(l *machine.Lane, m *machine.Move) {
	p := r.b.Prog
	lo := int(p.Rows[l.Channel].ConnLo)
	for i := range m.Dsts {
		switch o := &m.Dsts[i]; o.Kind {
		case plan.FifoSend:
			r.b.sends[lo+int(o.Conn)].Post(m.Bytes, r.args.Sig)
		case plan.PeerScratch:
			ref := l.Ref(o)
			c, epoch := &r.x.cfg, r.x.epochs[l.Channel]
			off := c.Layout.slot(l.Channel, epoch%plan.Banks, ref.Slot)
			c.Regions[ref.Index].Put(off+slotMeta, uint64(uint32(m.Bytes))|uint64(r.args.Sig)<<32)
			c.Regions[ref.Index].Publish(off+slotFlag, epoch+1)
			r.x.ring(int32(ref.Index))
		}
	}
	for i := range m.Srcs {
		if o := &m.Srcs[i]; o.Kind == plan.FifoRecv {
			r.b.recvs[lo+int(o.Conn)].Release()
		}
	}
}
