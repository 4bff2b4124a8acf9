package check

import (
	"github.com/goccl/goccl/comm/plan"
	"github.com/goccl/goccl/comm/plan/machine"
)

// apart refuses a slice whose source and destination overlap without being the
// same bytes: reduced block by block, it would read what it has just written.
func (a *agent) apart(l *machine.Lane, m *machine.Move) bool {
	if m.Bytes == 0 || a.o.alias == OutOfPlace {
		return true
	}
	n := int64(m.Bytes)
	for i := range m.Srcs {
		if k := m.Srcs[i].Kind; k != plan.In && k != plan.PeerIn {
			continue
		}
		src := l.Ref(&m.Srcs[i])
		from, _ := a.view(&src)
		for j := range m.Dsts {
			if k := m.Dsts[j].Kind; k != plan.Out && k != plan.PeerOut {
				continue
			}
			dst := l.Ref(&m.Dsts[j])
			into, _ := a.view(&dst)
			d := from.off + src.Off - into.off - dst.Off
			if from.s == into.s && d != 0 && d < n && -d < n {
				return a.fail(Overwritten, "source and destination overlap by %d of %d bytes", n-max(d, -d), n)
			}
		}
	}
	return true
}

// readAll reads every source into a.data.
func (a *agent) readAll(l *machine.Lane, m *machine.Move) bool {
	for len(a.data) < len(m.Srcs) {
		a.data = append(a.data, nil)
	}
	for i := range m.Srcs {
		o := &m.Srcs[i]
		d := a.data[i][:0]
		switch o.Kind {
		case plan.FifoRecv:
			f := a.fifos[o.Conn]
			if !a.clock.after(f.receiver) {
				return a.fail(Race, "receives from rank %d at the same time as %s", f.from, a.w.threadName(f.receiver.thread))
			}
			s := f.last()
			if s.step != f.released+1 || !a.clock.after(s.wrote) {
				return a.fail(SlotReuse, "step %d of rank %d has been overwritten in its slot before it was read", f.released, f.from)
			}
			d = append(d, s.data...)
		case plan.Scratch:
			s := a.w.slot(a.rank, a.ch, a.w.epochs[a.rank][a.ch], l.Ref(o).Slot)
			s.reads.add(a.now())
			d = append(d, s.data...)
		default:
			var ok bool
			if d, ok = a.readBuffer(l, m, o, d); !ok {
				return false
			}
		}
		if o.Kind == plan.In && m.Flags&plan.Pre != 0 {
			for j := range d {
				d[j].v = a.w.terms.wrap(d[j].v, tagPre)
			}
		}
		a.data[i] = d
	}
	return true
}

// readBuffer reads a user's buffer.
func (a *agent) readBuffer(l *machine.Lane, m *machine.Move, o *plan.Operand, d []piece) ([]piece, bool) {
	ref := l.Ref(o)
	v, _ := a.view(&ref)
	bad := v.s.each(v.off+ref.Off, int64(m.Bytes), func(g *seg) *Violation {
		if !a.clock.after(g.wrote) {
			return a.violation(Race, "reads bytes %d to %d (%v) while %s can write them", g.off, g.end, o.Kind, a.w.threadName(g.wrote.thread))
		}
		if g.stale {
			return a.violation(Overwritten, "reads input at bytes %d to %d (%v), which the result has overwritten", g.off, g.end, o.Kind)
		}
		g.reads.add(a.now())
		d = append(d, piece{n: g.end - g.off, v: g.v})
		return nil
	})
	if bad != nil {
		a.w.bad = bad
	}
	return d, bad == nil
}

// combine forms the result of the slice in a.out.
func (a *agent) combine(m *machine.Move) {
	a.out = a.out[:0]
	post := m.Flags&plan.Post != 0
	if len(m.Srcs) == 1 {
		a.out = append(a.out, a.data[0]...)
	} else {
		a.zip(len(m.Srcs), int64(m.Bytes))
	}
	if post {
		for i := range a.out {
			a.out[i].v = a.w.terms.wrap(a.out[i].v, tagPost)
		}
	}
}

// zip reduces the sources range by range, where a range ends as soon as a piece
// of one source does.
func (a *agent) zip(srcs int, bytes int64) {
	var at [64]int // piece of each source
	var in [64]int64
	index, inside := at[:], in[:]
	if srcs > len(at) {
		index, inside = make([]int, srcs), make([]int64, srcs)
	}
	for bytes > 0 {
		n := bytes
		for i := range srcs {
			n = min(n, a.data[i][index[i]].n-inside[i])
		}
		a.vals = a.vals[:0]
		for i := range srcs {
			v := a.data[i][index[i]].v
			v.at += inside[i]
			a.vals = append(a.vals, v)
			if inside[i] += n; inside[i] == a.data[i][index[i]].n {
				index[i], inside[i] = index[i]+1, 0
			}
		}
		a.out = append(a.out, piece{n: n, v: a.w.terms.reduce(a.vals)})
		bytes -= n
	}
}

// write puts the result into one destination.
func (a *agent) write(l *machine.Lane, m *machine.Move, o *plan.Operand) bool {
	switch o.Kind {
	case plan.FifoSend:
		f := a.fifos[o.Conn]
		s := f.next()
		switch {
		case int64(m.Bytes) > a.w.slotBytes(a.p):
			return a.fail(Overflow, "%d bytes into a slot of %d", m.Bytes, a.w.slotBytes(a.p))
		case !a.clock.after(f.sender):
			return a.fail(Race, "sends to rank %d at the same time as %s", f.to, a.w.threadName(f.sender.thread))
		case s.step > f.released || !a.clock.after(s.read):
			return a.fail(SlotReuse, "step %d toward rank %d takes the slot of step %d, whose reads may not be over", f.posted, f.to, s.step-1)
		}
		f.post(a.clock, a.now(), int64(m.Bytes), a.out)
		return true
	case plan.PeerScratch:
		return a.writeScratch(l, m, o)
	}
	ref := l.Ref(o)
	v, _ := a.view(&ref)
	if m.Bytes == 0 || a.itself(l, m, v, ref.Off) {
		return true
	}
	return a.writeBuffer(m, o, v, ref.Off)
}

// itself reports whether the slice is a copy of bytes onto themselves, which the
// executors leave out.
func (a *agent) itself(l *machine.Lane, m *machine.Move, v view, off int64) bool {
	if len(m.Srcs) != 1 || m.Flags != 0 || m.Srcs[0].Kind != plan.In && m.Srcs[0].Kind != plan.PeerIn {
		return false
	}
	src := l.Ref(&m.Srcs[0])
	from, _ := a.view(&src)
	return from.s == v.s && from.off+src.Off == v.off+off
}

func (a *agent) writeBuffer(m *machine.Move, o *plan.Operand, v view, off int64) bool {
	at := 0
	var inside int64
	// Cut the destination where the result is cut, so that each segment takes one
	// value.
	pos := v.off + off
	for _, p := range a.out {
		v.s.cut(pos)
		pos += p.n
	}
	bad := v.s.each(v.off+off, int64(m.Bytes), func(g *seg) *Violation {
		if s, bad := g.reads.unordered(a.clock); bad {
			return a.violation(Race, "writes bytes %d to %d (%v) while %s can read them", g.off, g.end, o.Kind, a.w.threadName(s.thread))
		}
		if !a.clock.after(g.wrote) {
			return a.violation(Race, "writes bytes %d to %d (%v) while %s can write them", g.off, g.end, o.Kind, a.w.threadName(g.wrote.thread))
		}
		g.v = a.out[at].v
		g.v.at += inside
		g.stale, g.wrote, g.reads = true, a.now(), readers{}
		if inside += g.end - g.off; inside == a.out[at].n {
			at, inside = at+1, 0
		}
		return nil
	})
	if bad != nil {
		a.w.bad = bad
	}
	return bad == nil
}

func (a *agent) writeScratch(l *machine.Lane, m *machine.Move, o *plan.Operand) bool {
	ref := l.Ref(o)
	epoch := a.w.epochs[a.rank][a.ch]
	s := a.w.slot(ref.Index, a.ch, epoch, ref.Slot)
	if int64(m.Bytes) > a.w.slotBytes(a.p) {
		return a.fail(Overflow, "%d bytes into a scratch slot of %d", m.Bytes, a.w.slotBytes(a.p))
	}
	if r, bad := s.reads.unordered(a.clock); bad || !a.clock.after(s.wrote) {
		if !bad {
			r = s.wrote
		}
		return a.fail(BankReuse, "writes scratch slot %d of rank %d in epoch %d while %s can use it", ref.Slot, ref.Index, epoch, a.w.threadName(r.thread))
	}
	s.data = append(s.data[:0], a.out...)
	s.bytes, s.wrote, s.reads = int64(m.Bytes), a.now(), readers{}
	if s.epoch != epoch+1 {
		s.epoch, s.flag = epoch+1, a.clock.copyTo(s.flag)
	}
	return true
}

// slotBytes is what fits into a slot that p uses.
func (w *world) slotBytes(p *plan.Program) int64 {
	if w.opt.SlotBytes > 0 {
		return w.opt.SlotBytes
	}
	return int64(p.Key.Chunk)
}
