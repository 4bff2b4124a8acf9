package plan

import (
	"fmt"

	"github.com/goccl/goccl"
)

// Bounds of what Validate accepts. They are far above what builders make, and
// keep all arithmetic on sizes far from overflow.
const (
	maxRanks  = 1 << 16
	maxGrain  = 1 << 20
	maxChunk  = 1 << 31
	maxSlices = 64
	maxSems   = 256
)

// Validate reports the first thing that makes p malformed: an index out of
// range, loops that do not nest, an operand on the wrong side of a MOVE, or a
// field that is not zero though its instruction does not use it (so that equal
// Programs have equal bytes). A Program that passes can be stepped without a
// panic whatever its sizes; whether it does the right thing is for package
// check to say. Errors wrap goccl.ErrInvalid.
func Validate(p *Program) error {
	if p == nil {
		return fmt.Errorf("%w: no Program", goccl.ErrInvalid)
	}
	v := validator{p: p}
	for _, f := range []func() string{v.header, v.geometry, v.exprs, v.rows, v.lanes} {
		if bad := f(); bad != "" {
			return fmt.Errorf("%w: Program of rank %d for %v: %s", goccl.ErrInvalid, p.Rank, p.Key, bad)
		}
	}
	return nil
}

// validator looks at the parts of a Program in turn. Its methods return what is
// wrong, empty when nothing is.
type validator struct{ p *Program }

func (v validator) header() string {
	p, k := v.p, v.p.Key
	switch {
	case p.NRanks < 1 || p.NRanks > maxRanks || p.Rank < 0 || p.Rank >= p.NRanks:
		return fmt.Sprintf("rank %d of %d", p.Rank, p.NRanks)
	case !k.Coll.Valid() || !k.Algo.Valid() || !k.DType.Valid() || !k.Op.Valid() || k.Window > WindowBoth:
		return "the key is not valid"
	case !k.Proto.Valid() || k.Proto == goccl.AutoProto:
		return fmt.Sprintf("protocol %v", k.Proto)
	case k.Root < 0 || int(k.Root) >= p.NRanks:
		return fmt.Sprintf("root %d of %d ranks", k.Root, p.NRanks)
	case k.Channels == 0 || len(p.Rows) != int(k.Channels):
		return fmt.Sprintf("%d rows for %d channels", len(p.Rows), k.Channels)
	case p.Sems < 0 || p.Sems > maxSems:
		return fmt.Sprintf("%d semaphores; at most %d", p.Sems, maxSems)
	}
	return ""
}

// BaseOf returns how the buffers of a collective are cut: blocks of one rank
// each, or as a whole.
func BaseOf(c goccl.Collective) Base {
	switch c {
	case goccl.AllGather, goccl.ReduceScatter, goccl.AllToAll, goccl.Gather, goccl.Scatter:
		return PerRank
	}
	return Whole
}

func (v validator) geometry() string {
	g, k := v.p.Geom, v.p.Key
	switch {
	case v.p.NRanks > 1 && g.Base != BaseOf(k.Coll), g.Base > PerRank:
		return fmt.Sprintf("base %d for %v", g.Base, k.Coll)
	case g.Grain < 1 || g.Grain > maxGrain || g.Grain%int64(k.DType.Size()) != 0:
		return fmt.Sprintf("grain %d for %v", g.Grain, k.DType)
	case g.ChunkBytes < g.Grain || g.ChunkBytes > maxChunk || g.ChunkBytes%g.Grain != 0:
		return fmt.Sprintf("chunk %d is not a multiple of the grain %d", g.ChunkBytes, g.Grain)
	case g.ChunkBytes > int64(k.Chunk):
		return fmt.Sprintf("chunk %d; the key allows %d", g.ChunkBytes, k.Chunk)
	case g.Slices < 1 || g.Slices > maxSlices:
		return fmt.Sprintf("%d slices; want 1 to %d", g.Slices, maxSlices)
	case g.D < 1 || g.D > maxRanks || g.Base == PerRank && g.D != 1:
		return fmt.Sprintf("%d chunks an iteration", g.D)
	}
	return ""
}

func (v validator) exprs() string {
	for i, x := range v.p.Exprs {
		switch {
		case x.P < -1 || int(x.P) >= len(Row{}.P):
			return fmt.Sprintf("expression %d: row number %d", i, x.P)
		case x.M < 0:
			return fmt.Sprintf("expression %d: modulus %d", i, x.M)
		case x.T < -1 || int(x.T) >= len(v.p.Tables):
			return fmt.Sprintf("expression %d: table %d of %d", i, x.T, len(v.p.Tables))
		case x.T >= 0 && (x.M == 0 || int(x.M) > len(v.p.Tables[x.T])):
			return fmt.Sprintf("expression %d: modulus %d into a table of %d", i, x.M, len(v.p.Tables[x.T]))
		}
	}
	return ""
}

func (v validator) rows() string {
	p := v.p
	for i, c := range p.Conns {
		if !v.peer(c.Peer) || c.Index > 1 || !c.Proto.Valid() || c.Proto == goccl.AutoProto {
			return fmt.Sprintf("connector %d: peer %d, index %d, protocol %v", i, c.Peer, c.Index, c.Proto)
		}
	}
	for i, s := range p.Sigs {
		if !v.peer(s.Peer) || s.Word >= Words {
			return fmt.Sprintf("signal %d: peer %d, word %d", i, s.Peer, s.Word)
		}
	}
	var used [len(Row{}.P)]bool
	for _, x := range p.Exprs {
		if x.P >= 0 {
			used[x.P] = true
		}
	}
	for ch, r := range p.Rows {
		for i, x := range r.P {
			if x != 0 && !used[i] {
				return fmt.Sprintf("row %d: number %d is %d and no expression uses it", ch, i, x)
			}
		}
		if int(r.ConnLo)+int(r.ConnN) > len(p.Conns) || int(r.SigLo)+int(r.SigN) > len(p.Sigs) {
			return fmt.Sprintf("row %d: connectors or signals out of range", ch)
		}
		conns := p.Conns[r.ConnLo : r.ConnLo+r.ConnN]
		if i := twin(conns); i >= 0 {
			return fmt.Sprintf("row %d: connector %d is there twice", ch, i)
		}
		if i := twin(p.Sigs[r.SigLo : r.SigLo+r.SigN]); i >= 0 {
			return fmt.Sprintf("row %d: signal %d is there twice", ch, i)
		}
	}
	return ""
}

func (v validator) peer(r int32) bool {
	return r >= 0 && int(r) < v.p.NRanks && int(r) != v.p.Rank
}

// twin returns the index of an element that equals an earlier one, or -1.
func twin[T comparable](list []T) int {
	seen := make(map[T]bool, len(list))
	for i, x := range list {
		if seen[x] {
			return i
		}
		seen[x] = true
	}
	return -1
}
