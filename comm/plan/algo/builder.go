// Package algo builds Programs: one pure function for each algorithm, written
// once for every device. What each costs in steps and bytes stands beside it;
// n is the number of ranks, B the bytes of the whole buffer.
package algo

import (
	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/plan"
)

// builder assembles the parts of a Program. Expressions are shared.
type builder struct {
	p *plan.Program
}

func newBuilder(k plan.Key, rank, n int, g plan.Geom) *builder {
	return &builder{p: &plan.Program{Key: k, Rank: rank, NRanks: n, Geom: g, Rows: make([]plan.Row, k.Channels)}}
}

// expr returns the index of e, adding it when it is new.
func (b *builder) expr(e plan.Expr) uint16 {
	for i, x := range b.p.Exprs {
		if x == e {
			return uint16(i)
		}
	}
	b.p.Exprs = append(b.p.Exprs, e)
	return uint16(len(b.p.Exprs) - 1)
}

// lit is the constant v.
func (b *builder) lit(v int) uint16 { return b.expr(plan.Expr{A: int32(v), P: -1, T: -1}) }

// pos is (row 0 + a + s*j) mod n: a place on the ring.
func (b *builder) pos(a, s, table int) uint16 {
	return b.expr(plan.Expr{A: int32(a), B: int32(s), M: int32(b.p.NRanks), P: 0, T: int8(table)})
}

// opnds appends a run of operands and returns its first index.
func (b *builder) opnds(os []plan.Operand) uint16 {
	b.p.Opnds = append(b.p.Opnds, os...)
	return uint16(len(b.p.Opnds) - len(os))
}

func in(chunk uint16) plan.Operand  { return plan.Operand{Kind: plan.In, Chunk: chunk} }
func out(chunk uint16) plan.Operand { return plan.Operand{Kind: plan.Out, Chunk: chunk} }
func send(conn int) plan.Operand    { return plan.Operand{Kind: plan.FifoSend, Conn: uint16(conn)} }
func recv(conn int) plan.Operand    { return plan.Operand{Kind: plan.FifoRecv, Conn: uint16(conn)} }

// from and to name the two operand lists of a move.
type (
	from []plan.Operand
	to   []plan.Operand
)

// move appends dst* = reduce(src...) over the chunk; In sources are scaled.
func (b *builder) move(chunk uint16, s from, d to) { b.emit(chunk, s, d, 0) }

// last is a move that makes the final result: the division of an average.
func (b *builder) last(chunk uint16, s from, d to) { b.emit(chunk, s, d, plan.Post) }

func (b *builder) emit(chunk uint16, s from, d to, flags uint8) {
	if b.p.Key.Coll.Reduces() {
		for _, o := range s {
			// Operations on windows are never scaled: a rank reads its peers' inputs
			// and does not know their factors.
			if o.Kind == plan.In && b.p.Key.Window == plan.WindowNone {
				flags |= plan.Pre
			}
		}
	} else {
		flags = 0
	}
	b.p.Code = append(b.p.Code, plan.Instr{Op: plan.MOVE, Flags: flags, NSrc: uint8(len(s)), NDst: uint8(len(d)),
		Src: b.opnds(s), Dst: b.opnds(d), Chunk: chunk})
}

func (b *builder) loop() { b.p.Code = append(b.p.Code, plan.Instr{Op: plan.LOOP}) }
func (b *builder) end()  { b.p.Code = append(b.p.Code, plan.Instr{Op: plan.END}) }

// rep runs body m times, inner counter j; nothing when m is 0.
func (b *builder) rep(m int, body func()) {
	if m <= 0 {
		return
	}
	b.p.Code = append(b.p.Code, plan.Instr{Op: plan.REP, Chunk: b.lit(m)})
	body()
	b.end()
}

// lane runs body as a lane of every channel with channel mod mod == rem.
func (b *builder) lane(mod, rem int, body func()) {
	lo := len(b.p.Code)
	body()
	if len(b.p.Code) > lo {
		b.p.Lanes = append(b.p.Lanes, plan.Lane{Mod: uint8(mod), Rem: uint8(rem), Lo: uint16(lo), Hi: uint16(len(b.p.Code))})
	}
}

// conn adds a connector to channel ch and returns its index in the channel.
// Connectors of a channel are added one after another.
func (b *builder) conn(ch, peer int, send bool) int {
	r := &b.p.Rows[ch]
	if r.ConnN == 0 {
		r.ConnLo = uint16(len(b.p.Conns))
	}
	index := uint8(0)
	if b.p.Key.Coll == goccl.SendRecv {
		index = 1
	}
	b.p.Conns = append(b.p.Conns, plan.Conn{Peer: int32(peer), Send: send, Index: index, Proto: b.p.Key.Proto})
	r.ConnN++
	return int(r.ConnN) - 1
}

// conns adds the same connectors to every channel and returns their first index.
func (b *builder) conns(add func(ch int)) {
	for ch := range b.p.Rows {
		add(ch)
	}
}

// sigs adds both ends of a signal word with every other rank to every channel:
// index 2*word*(n-1) + i rings peer i (others order), index (2*word+1)*(n-1) + i
// waits for it.
func (b *builder) sigs(words int, others []int) {
	for ch := range b.p.Rows {
		r := &b.p.Rows[ch]
		r.SigLo = uint16(len(b.p.Sigs))
		for w := range words {
			for _, out := range []bool{true, false} {
				for _, q := range others {
					b.p.Sigs = append(b.p.Sigs, plan.Sig{Peer: int32(q), Out: out, Word: uint8(w)})
				}
			}
		}
		r.SigN = uint16(len(b.p.Sigs)) - r.SigLo
	}
}

// meet rings every other rank on a signal word, then waits for all of them.
func (b *builder) meet(word int, others []int) {
	n := len(others)
	for i := range others {
		b.p.Code = append(b.p.Code, plan.Instr{Op: plan.SIGNAL, Word: uint16(2*word*n + i), Delta: 1})
	}
	for i := range others {
		b.p.Code = append(b.p.Code, plan.Instr{Op: plan.WAIT, Word: uint16((2*word+1)*n + i), Delta: 1})
	}
}

// others lists the ranks but this one, beginning with the next, so that not all
// ranks begin with the same peer.
func (b *builder) others() []int {
	qs := make([]int, 0, b.p.NRanks-1)
	for i := 1; i < b.p.NRanks; i++ {
		qs = append(qs, (b.p.Rank+i)%b.p.NRanks)
	}
	return qs
}

// ordered lists one source per rank in rank order: own for this rank, theirs
// for the others. All ranks form the same sum in the same order.
func (b *builder) ordered(own plan.Operand, theirs func(q int) plan.Operand) from {
	s := make(from, 0, b.p.NRanks)
	for q := range b.p.NRanks {
		if q == b.p.Rank {
			s = append(s, own)
		} else {
			s = append(s, theirs(q))
		}
	}
	return s
}
