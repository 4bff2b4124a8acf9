package check

import (
	"slices"

	"github.com/goccl/goccl/comm/plan"
)

// clone copies a Program so deep that every field can be edited.
func clone(p *plan.Program) *plan.Program {
	if p == nil {
		return nil
	}
	q := *p
	q.Lanes, q.Code, q.Opnds = slices.Clone(p.Lanes), slices.Clone(p.Code), slices.Clone(p.Opnds)
	q.Exprs, q.Rows = slices.Clone(p.Exprs), slices.Clone(p.Rows)
	q.Conns, q.Sigs = slices.Clone(p.Conns), slices.Clone(p.Sigs)
	q.Tables = nil
	for _, t := range p.Tables {
		q.Tables = append(q.Tables, slices.Clone(t))
	}
	return &q
}

func cloneAll(ps []*plan.Program) []*plan.Program {
	qs := make([]*plan.Program, len(ps))
	for i, p := range ps {
		qs[i] = clone(p)
	}
	return qs
}

// lit adds the constant v to a Program's expressions.
func lit(p *plan.Program, v int) uint16 {
	p.Exprs = append(p.Exprs, plan.Expr{A: int32(v), P: -1, T: -1})
	return uint16(len(p.Exprs) - 1)
}

// find returns the index of the i-th instruction of a kind.
func find(p *plan.Program, op plan.Code, i int) int {
	for pc := range p.Code {
		if p.Code[pc].Op == op {
			if i == 0 {
				return pc
			}
			i--
		}
	}
	panic("the Program has no such instruction")
}

// script assembles Programs by hand.
type script struct{ p *plan.Program }

func newScript(k plan.Key, rank, n int, g plan.Geom) script {
	return script{&plan.Program{Key: k, Rank: rank, NRanks: n, Geom: g, Rows: make([]plan.Row, k.Channels)}}
}

func (s script) lit(v int) uint16 { return lit(s.p, v) }

func (s script) op(c plan.Code) { s.p.Code = append(s.p.Code, plan.Instr{Op: c}) }

func (s script) word(c plan.Code, w int) {
	s.p.Code = append(s.p.Code, plan.Instr{Op: c, Word: uint16(w), Delta: 1})
}

func (s script) move(chunk int, flags uint8, srcs, dsts []plan.Operand) {
	lo := uint16(len(s.p.Opnds))
	s.p.Opnds = append(append(s.p.Opnds, srcs...), dsts...)
	s.p.Code = append(s.p.Code, plan.Instr{Op: plan.MOVE, Flags: flags, NSrc: uint8(len(srcs)), NDst: uint8(len(dsts)),
		Src: lo, Dst: lo + uint16(len(srcs)), Chunk: s.lit(chunk)})
}

func (s script) lane(body func()) {
	lo := uint16(len(s.p.Code))
	body()
	s.p.Lanes = append(s.p.Lanes, plan.Lane{Mod: 1, Lo: lo, Hi: uint16(len(s.p.Code))})
}

// conns gives channel 0 its connectors.
func (s script) conns(cs ...plan.Conn) {
	for i := range cs {
		cs[i].Proto = s.p.Key.Proto
	}
	s.p.Conns, s.p.Rows[0].ConnN = cs, uint16(len(cs))
}

func (s script) in(v int) plan.Operand  { return plan.Operand{Kind: plan.In, Chunk: s.lit(v)} }
func (s script) out(v int) plan.Operand { return plan.Operand{Kind: plan.Out, Chunk: s.lit(v)} }
func (s script) scratch(v int) plan.Operand {
	return plan.Operand{Kind: plan.Scratch, Slot: s.lit(v)}
}
func (s script) peerScratch(q int) plan.Operand {
	return plan.Operand{Kind: plan.PeerScratch, Peer: s.lit(q), Slot: s.lit(s.p.Rank)}
}
func send(c int) plan.Operand { return plan.Operand{Kind: plan.FifoSend, Conn: uint16(c)} }
func recv(c int) plan.Operand { return plan.Operand{Kind: plan.FifoRecv, Conn: uint16(c)} }

func ops(os ...plan.Operand) []plan.Operand { return os }
