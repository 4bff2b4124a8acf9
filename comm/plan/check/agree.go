package check

import (
	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/plan"
)

// agree checks what must hold between the Programs of all ranks before any of
// them is stepped.
func agree(progs []*plan.Program) *Violation {
	if len(progs) == 0 {
		return atRank(Malformed, 0, "no ranks")
	}
	var first *plan.Program
	for r, p := range progs {
		if p == nil {
			continue
		}
		if err := plan.Validate(p); err != nil {
			return atRank(Malformed, r, "%v", err)
		}
		if p.NRanks != len(progs) || p.Rank != r {
			return atRank(Malformed, r, "this is the Program of rank %d of %d, in the place of rank %d of %d", p.Rank, p.NRanks, r, len(progs))
		}
		if first == nil {
			first = p
		}
		if v := same(first, p); v != nil {
			return v
		}
	}
	if first == nil {
		return atRank(Malformed, 0, "no Programs")
	}
	for r, p := range progs {
		if p == nil && first.Key.Coll != goccl.SendRecv {
			return atRank(Disagreement, r, "this rank has no Program; rank %d has %v", first.Rank, first.Key)
		}
	}
	for _, p := range progs {
		if p == nil {
			continue
		}
		if v := matched(progs, p); v != nil {
			return v
		}
	}
	return nil
}

// same compares what is equal on all ranks.
func same(a, b *plan.Program) *Violation {
	ka, kb := a.Key, b.Key
	if ka.Coll == goccl.SendRecv {
		ka.Send, ka.Root, kb.Send, kb.Root = false, 0, false, 0
	}
	switch {
	case ka != kb:
		return atRank(Disagreement, b.Rank, "key %v; rank %d has %v", b.Key, a.Rank, a.Key)
	case a.Geom != b.Geom:
		return atRank(Disagreement, b.Rank, "geometry %+v; rank %d has %+v", b.Geom, a.Rank, a.Geom)
	case a.Rendezvous != b.Rendezvous:
		return atRank(Disagreement, b.Rank, "rendezvous %v; rank %d has %v", b.Rendezvous, a.Rank, a.Rendezvous)
	case a.UsesScratch() != b.UsesScratch():
		return atRank(Unequal, b.Rank, "uses scratch: %v; rank %d: %v: their epochs drift apart", b.UsesScratch(), a.Rank, a.UsesScratch())
	case a.Loops() != b.Loops():
		return atRank(Unequal, b.Rank, "loops: %v; rank %d: %v", b.Loops(), a.Rank, a.Loops())
	}
	return nil
}

// matched checks that every connector and signal of p has its other end.
func matched(progs []*plan.Program, p *plan.Program) *Violation {
	if k := p.Key; k.Coll == goccl.SendRecv && p.NRanks > 1 {
		if q := progs[k.Root]; q == nil || int(q.Key.Root) != p.Rank || q.Key.Send == k.Send {
			return atRank(Unmatched, p.Rank, "rank %d is not the other side of %v", k.Root, k)
		}
	}
	for ch, row := range p.Rows {
		for _, c := range p.Conns[row.ConnLo : row.ConnLo+row.ConnN] {
			q := progs[c.Peer]
			other := plan.Conn{Peer: int32(p.Rank), Send: !c.Send, Index: c.Index, Proto: c.Proto}
			if q == nil || connIndex(q, ch, other) < 0 {
				return atRank(Unmatched, p.Rank, "channel %d: connector %+v has no other end at rank %d", ch, c, c.Peer)
			}
		}
		for _, s := range p.Sigs[row.SigLo : row.SigLo+row.SigN] {
			q := progs[s.Peer]
			other := plan.Sig{Peer: int32(p.Rank), Out: !s.Out, Word: s.Word}
			if q == nil || sigIndex(q, ch, other) < 0 {
				return atRank(Unmatched, p.Rank, "channel %d: signal %+v has no other end at rank %d", ch, s, s.Peer)
			}
		}
	}
	return nil
}

// connIndex returns the number of connector c in channel ch of p, -1 when it is
// not there.
func connIndex(p *plan.Program, ch int, c plan.Conn) int {
	r := &p.Rows[ch]
	for i := range int(r.ConnN) {
		if p.Conns[int(r.ConnLo)+i] == c {
			return i
		}
	}
	return -1
}

func sigIndex(p *plan.Program, ch int, s plan.Sig) int {
	r := &p.Rows[ch]
	for i := range int(r.SigN) {
		if p.Sigs[int(r.SigLo)+i] == s {
			return i
		}
	}
	return -1
}
