package check

import (
	"github.com/goccl/goccl/comm/plan"
	"github.com/goccl/goccl/comm/plan/machine"
)

// Move implements machine.Domain: one slice, when all its sources have arrived
// and all its destinations are free.
func (a *agent) Move(l *machine.Lane, m *machine.Move) bool {
	if !a.sane(l, m) || !a.ready(l, m) {
		return false
	}
	a.acquire(l, m)
	if !a.apart(l, m) || !a.readAll(l, m) {
		return false
	}
	a.combine(m)
	for i := range m.Dsts {
		if !a.write(l, m, &m.Dsts[i]) {
			return false
		}
	}
	// Slots are given back after all reads; everything is published at once.
	for i := range m.Srcs {
		if o := &m.Srcs[i]; o.Kind == plan.FifoRecv {
			a.fifos[o.Conn].release(a.clock, a.now())
		}
	}
	a.tick()
	return true
}

// sane checks what no executor could do.
func (a *agent) sane(l *machine.Lane, m *machine.Move) bool {
	in := &a.p.Code[l.PC()]
	if a.p.Geom.Base == plan.Whole {
		if v := l.Value(in.Chunk); v < 0 || v >= a.p.Geom.D {
			return a.fail(Bounds, "chunk %d of %d", v, a.p.Geom.D)
		}
	}
	if m.Bytes%a.p.Key.DType.Size() != 0 {
		return a.fail(Bounds, "%d bytes cut an element of %v", m.Bytes, a.p.Key.DType)
	}
	for _, os := range [2][]plan.Operand{m.Srcs, m.Dsts} {
		for i := range os {
			if !a.saneOperand(l, m, &os[i]) {
				return false
			}
		}
	}
	return true
}

func (a *agent) saneOperand(l *machine.Lane, m *machine.Move, o *plan.Operand) bool {
	switch o.Kind {
	case plan.FifoSend, plan.FifoRecv:
		return true
	case plan.PeerScratch, plan.PeerIn, plan.PeerOut:
		if q := l.Value(o.Peer); q < 0 || q >= a.w.n || q == a.rank {
			return a.fail(Bounds, "peer %d of %d ranks", q, a.w.n)
		}
	}
	switch o.Kind {
	case plan.Scratch, plan.PeerScratch:
		slot := l.Value(o.Slot)
		if slot < 0 || slot >= a.w.n {
			return a.fail(Bounds, "scratch slot %d of %d", slot, a.w.n)
		}
		if o.Kind == plan.PeerScratch && slot != a.rank {
			return a.fail(Race, "writes scratch slot %d of rank %d, which is rank %d's", slot, l.Value(o.Peer), slot)
		}
		return true
	}
	most := a.p.Geom.D
	if a.p.Geom.Base == plan.PerRank {
		most = a.w.n
	}
	if v := l.Value(o.Chunk); v < 0 || v >= most {
		return a.fail(Bounds, "%v: chunk or block %d of %d", o.Kind, v, most)
	}
	ref := l.Ref(o)
	v, ok := a.view(&ref)
	switch {
	case !ok:
		return a.fail(Race, "touches a buffer of rank %d before it is known where it is", ref.Index)
	case v.s == nil:
		return a.fail(Bounds, "%v: this rank has no such buffer", o.Kind)
	case m.Bytes > 0 && (ref.Off < 0 || ref.Off+int64(m.Bytes) > v.n):
		return a.fail(Bounds, "%v: bytes %d to %d of %d", o.Kind, ref.Off, ref.Off+int64(m.Bytes), v.n)
	}
	return true
}

// view returns the buffer that an operand names; false when it is a peer's and
// this lane has not learnt where it is.
func (a *agent) view(r *machine.Ref) (view, bool) {
	switch r.Kind {
	case plan.In:
		return a.o.in[a.rank], true
	case plan.Out:
		return a.o.out[a.rank], true
	}
	if a.learnt == nil || !a.learnt[r.Index] {
		return view{}, false
	}
	if r.Kind == plan.PeerIn {
		return a.o.in[r.Index], true
	}
	return a.o.out[r.Index], true
}

// ready reports whether all sources have arrived and all destinations are free.
func (a *agent) ready(l *machine.Lane, m *machine.Move) bool {
	for i := range m.Srcs {
		switch o := &m.Srcs[i]; o.Kind {
		case plan.FifoRecv:
			f := a.fifos[o.Conn]
			if f.empty() {
				return a.block("rank %d to send step %d", f.from, f.released)
			}
			if !a.arrived(f.from, f.last().bytes, m) {
				return false
			}
		case plan.Scratch:
			if !a.scratchArrived(l.Ref(o).Slot, m) {
				return false
			}
		}
	}
	for i := range m.Dsts {
		if o := &m.Dsts[i]; o.Kind == plan.FifoSend {
			if f := a.fifos[o.Conn]; f.full() {
				return a.block("rank %d to free a slot for step %d", f.to, f.posted)
			}
		}
	}
	return true
}

// arrived checks a message against what this slice expects.
func (a *agent) arrived(from int, bytes int64, m *machine.Move) bool {
	if bytes != int64(m.Bytes) {
		return a.fail(Length, "a message of rank %d has %d bytes; expected %d", from, bytes, m.Bytes)
	}
	return true
}

// scratchArrived reports whether a peer has written its slot of this epoch.
func (a *agent) scratchArrived(peer int, m *machine.Move) bool {
	epoch := a.w.epochs[a.rank][a.ch]
	s := a.w.slot(a.rank, a.ch, epoch, peer)
	switch {
	case s.epoch < epoch+1:
		return a.block("rank %d to write scratch in epoch %d", peer, int(epoch))
	case s.epoch > epoch+1:
		return a.fail(BankReuse, "scratch slot %d of epoch %d has been written again in epoch %d before this read", peer, epoch, s.epoch-1)
	}
	if !a.clock.after(s.wrote) && !s.flag.after(s.wrote) {
		return a.fail(BankReuse, "scratch slot %d can be written again while it is read", peer)
	}
	return a.arrived(peer, s.bytes, m)
}

// slot returns a scratch slot; its epoch counts from one, zero is never written.
func (w *world) slot(r, ch int, epoch uint64, slot int) *scratchSlot {
	k := slotKey{rank: r, channel: ch, bank: epoch % uint64(w.banks), slot: slot}
	s := w.scratch[k]
	if s == nil {
		s = &scratchSlot{}
		w.scratch[k] = s
	}
	return s
}

// acquire takes over what this slice has waited for.
func (a *agent) acquire(l *machine.Lane, m *machine.Move) {
	for i := range m.Srcs {
		switch o := &m.Srcs[i]; o.Kind {
		case plan.FifoRecv:
			a.clock.join(a.fifos[o.Conn].last().full)
		case plan.Scratch:
			a.clock.join(a.w.slot(a.rank, a.ch, a.w.epochs[a.rank][a.ch], l.Ref(o).Slot).flag)
		}
	}
	for i := range m.Dsts {
		if o := &m.Dsts[i]; o.Kind == plan.FifoSend {
			a.fifos[o.Conn].acquire(a.clock)
		}
	}
}
