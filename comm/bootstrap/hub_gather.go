package bootstrap

import (
	"fmt"
	"maps"
	"slices"

	"github.com/goccl/goccl/comm/wire"
)

// gather is a collective of the control plane that some rank has entered.
type gather struct {
	op      wire.Op
	opener  *member // who entered first and so defined op
	parts   [][]byte
	arrived []bool
	count   int
	bytes   int
	verdict *wire.End // it cannot complete: what later arrivals are told
}

// maxOpen bounds how many collectives one rank may enter ahead of the slowest.
const maxOpen = 1024

// put lets a rank enter its next collective.
func (h *hub) put(m *member, p wire.Put) {
	if p.Seq != m.puts+1 {
		h.drop(m.conn, fmt.Sprintf("it entered collective %d after %d", p.Seq, m.puts))
		return
	}
	m.puts = p.Seq
	if m.state == failed {
		first := h.gone[0] // the root cause, for the rank that failed as for the others
		h.send(wire.End{Seq: p.Seq, Code: first.code(), Rank: first.rank, Text: first.cause}, m.conn)
		return
	}
	g := h.open[p.Seq]
	if g == nil {
		if len(h.open) >= maxOpen {
			h.drop(m.conn, fmt.Sprintf("it is %d collectives ahead of the slowest rank", len(h.open)))
			return
		}
		g = &gather{op: p.Op, opener: m, parts: make([][]byte, h.size), arrived: make([]bool, h.size)}
		h.open[p.Seq] = g
	}
	if g.verdict != nil {
		h.send(*g.verdict, m.conn)
		h.prune(p.Seq)
		return
	}
	g.arrived[m.rank] = true
	g.parts[m.rank] = p.Data
	g.count++
	g.bytes += len(p.Data)
	switch {
	case g.op != p.Op:
		h.conclude(p.Seq, g, wire.End{Code: wire.CodeMismatch, Rank: m.rank, Text: fmt.Sprintf(
			"call %d is %v on rank %d (%s) and %v on rank %d (%s): all ranks must make the same calls in the same order",
			p.Seq, g.op, g.opener.rank, g.opener.who(), p.Op, m.rank, m.who())})
	case g.count == h.size:
		h.complete(p.Seq, g)
	default:
		h.endFor(p.Seq, g)
	}
	h.prune(p.Seq)
}

func (h *hub) complete(seq uint64, g *gather) {
	all := wire.All{Seq: seq}
	if g.op == wire.OpAllGather {
		all.Parts = g.parts
		if n := wire.AllSize(h.size, g.bytes); n > wire.MaxDown {
			h.conclude(seq, g, wire.End{Code: wire.CodeTooLarge, Rank: -1, Text: fmt.Sprintf(
				"the parts of all ranks are %d bytes, at most %d fit: gather large data with a collective on tensors", n, wire.MaxDown)})
			return
		}
	}
	h.send(all, h.everyone()...)
	delete(h.open, seq)
}

// conclude ends a collective without a result for all that entered it.
func (h *hub) conclude(seq uint64, g *gather, v wire.End) {
	v.Seq = seq
	for r, ok := range g.arrived {
		if !ok {
			v.Missing = append(v.Missing, r)
		}
	}
	g.verdict = &v
	g.parts = nil
	var to []int
	for r, ok := range g.arrived {
		if p := h.members[r]; ok && h.conns[p.conn] == p {
			to = append(to, p.conn)
		}
	}
	h.send(v, to...)
}

// endFor concludes a collective that can never complete because a rank is gone
// that had not entered it. Of several the first is named: the root cause.
func (h *hub) endFor(seq uint64, g *gather) {
	if g.verdict != nil {
		return
	}
	for _, p := range h.gone {
		if !g.arrived[p.rank] {
			h.conclude(seq, g, wire.End{Code: p.code(), Rank: p.rank, Text: p.cause})
			return
		}
	}
}

// endWaiting concludes the open collectives that some gone rank had not entered.
func (h *hub) endWaiting() {
	for _, seq := range slices.Sorted(maps.Keys(h.open)) {
		h.endFor(seq, h.open[seq])
	}
}

// expire handles a rank's deadline: the collective ends for all that entered it,
// so that either everybody has the result or everybody knows who was missing.
func (h *hub) expire(m *member, seq uint64) {
	why := fmt.Sprintf("the deadline of rank %d (%s) passed", m.rank, m.who())
	if seq == 0 {
		h.joinTimeout(why)
		return
	}
	if g := h.open[seq]; g != nil && g.verdict == nil && g.arrived[m.rank] {
		h.conclude(seq, g, wire.End{Code: wire.CodeTimeout, Rank: -1, Text: why})
		h.prune(seq)
	}
}

// prune forgets a concluded collective once no rank can still enter it.
func (h *hub) prune(seq uint64) {
	g := h.open[seq]
	if g == nil || g.verdict == nil {
		return
	}
	for _, m := range h.members {
		if m.state == live && m.puts < seq {
			return
		}
	}
	delete(h.open, seq)
}

func (h *hub) pruneAll() {
	for seq := range h.open {
		h.prune(seq)
	}
}
