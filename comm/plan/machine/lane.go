// Package machine runs the lanes of a Program, one slice at a time, over a
// domain: bytes (the host executor), symbols (the checker) or time (the
// simulator). Step never blocks and never spins; whoever drives it decides what
// to do when every lane is blocked.
package machine

import (
	"github.com/goccl/goccl/comm/plan"
)

// Lane is the state of one lane of one channel during one operation. The zero
// value is made ready by Reset; it holds no reference to the user's buffers.
type Lane struct {
	Prog    *plan.Program
	Channel int
	Index   int // of the lane in Prog.Lanes

	unit  int64 // bytes of the whole buffer (Whole) or of one block (PerRank)
	lo, n int64 // the channel's part of a unit
	iters int64

	pc, hi int
	k      int64
	loopPC int // first instruction inside LOOP
	j      int
	reps   int // -1 outside REP
	repPC  int
	slice  int
	move   Move
	armed  bool // move is worked out and waits to be done
}

// Move is one slice of a MOVE, with everything resolved but the places: ask
// Lane.Ref for each operand.
type Move struct {
	Srcs, Dsts []plan.Operand
	Flags      uint8
	Bytes      int   // of this slice
	off        int64 // of this slice within its chunk
}

// Ref is the place of an operand for the current slice.
type Ref struct {
	Kind  plan.Kind
	Index int   // FIFO: connector of the channel; PeerIn, PeerOut, PeerScratch: rank
	Slot  int   // scratch slot
	Off   int64 // bytes from the start of the buffer (In, Out, PeerIn, PeerOut)
}

// Status is what a step came to.
type Status uint8

// The statuses.
const (
	Progressed Status = iota
	Blocked           // nothing changed; step again when another lane or rank has moved
	Finished
)

// Reset makes the lane ready to run lane index of channel ch of p on units of
// the given bytes.
func (l *Lane) Reset(p *plan.Program, ch, index int, unit int64) {
	lo, n := p.Geom.Span(unit, ch, len(p.Rows))
	ln := p.Lanes[index]
	*l = Lane{Prog: p, Channel: ch, Index: index, unit: unit, lo: lo, n: n, iters: p.Geom.Iters(n),
		pc: int(ln.Lo), hi: int(ln.Hi), reps: -1}
}

// Iteration returns the outer counter, for messages.
func (l *Lane) Iteration() int64 { return l.k }

// PC returns the index of the current instruction in Prog.Code.
func (l *Lane) PC() int { return l.pc }

// Value returns expression e at the current inner counter.
func (l *Lane) Value(e uint16) int { return l.Prog.Eval(e, l.Channel, l.j) }

// Ref returns where operand o is for the current slice.
func (l *Lane) Ref(o *plan.Operand) Ref {
	switch o.Kind {
	case plan.In, plan.Out:
		return Ref{Kind: o.Kind, Off: l.offset(o.Chunk)}
	case plan.FifoSend, plan.FifoRecv:
		return Ref{Kind: o.Kind, Index: int(o.Conn)}
	case plan.Scratch:
		return Ref{Kind: o.Kind, Slot: l.Prog.Eval(o.Slot, l.Channel, l.j)}
	case plan.PeerScratch:
		return Ref{Kind: o.Kind, Index: l.Prog.Eval(o.Peer, l.Channel, l.j), Slot: l.Prog.Eval(o.Slot, l.Channel, l.j)}
	default:
		return Ref{Kind: o.Kind, Index: l.Prog.Eval(o.Peer, l.Channel, l.j), Off: l.offset(o.Chunk)}
	}
}

// offset returns the byte offset of the current slice of the chunk that
// expression e picks.
func (l *Lane) offset(e uint16) int64 {
	v := l.Prog.Eval(e, l.Channel, l.j)
	g := &l.Prog.Geom
	if g.Base == plan.PerRank {
		off, _ := g.Chunk(l.n, l.k, 0)
		return int64(v)*l.unit + l.lo + off + l.move.off
	}
	off, _ := g.Chunk(l.n, l.k, v)
	return l.lo + off + l.move.off
}

// length returns the bytes of the chunk that expression e picks.
func (l *Lane) length(e uint16) int64 {
	v := 0
	if l.Prog.Geom.Base == plan.Whole {
		v = l.Prog.Eval(e, l.Channel, l.j)
	}
	_, n := l.Prog.Geom.Chunk(l.n, l.k, v)
	return n
}
