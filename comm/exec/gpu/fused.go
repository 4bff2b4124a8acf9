package gpu

import (
	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/plan"
	"github.com/goccl/goccl/device/kernels/abi"
)

// The fused kernels run the one-shot Programs by LL over scratch: push the input into
// a slot of every peer, then reduce all slots in rank order, or copy each to its
// block. What the interpreter would read from an image are arguments of the kernel. A
// fused kernel uses the same slots, banks and flags and advances the same epoch, so a
// rank that interprets the Program and one that does not work together; tests hold
// one against the other, bit by bit.
const (
	fusedGather = "fused_ll_gather"
	fusedSum    = "fused_ll_"
)

// fuse lets a fused kernel run p, whose image is m, when its body is what one of them
// does.
func fuse(p *plan.Program, l Layout, bases []uintptr, mask uint32, m *Image) {
	e := &encoder{p: p, l: l, bases: bases, mask: mask, proto: goccl.LL, m: m}
	if m.Simple || m.window || p.NRanks < 2 || p.NRanks > int(abi.InterpFusedRanks) || !oneLane(p) || len(p.Code) < 2 || !pushes(p) {
		return
	}
	var name string
	post := false
	switch reduction, _ := e.reduction(); { // encoded
	case reducesSlots(p):
		name, post = fusedSum+reduction, p.Code[1].Flags&plan.Post != 0
	case copiesSlots(p):
		name = fusedGather
	default:
		return
	}
	h := e.head()
	f := &abi.InterpFused{Block: uint64((l.Ranks - 1) * l.block()), StateBytes: uint32(l.stateBytes()), Rank: h.Rank, Ranks: h.Ranks, Grain: h.Grain,
		Esize: h.Esize, FlagMask: mask, SlotBytes: h.ScratchBytes, Factor: 1}
	if p.Code[0].Flags&plan.Pre != 0 {
		f.Pre = 1
	}
	if post {
		f.Factor, f.Div = h.Factor, h.Div
	}
	for q := range p.NRanks {
		if q != p.Rank {
			f.Mates[q] = abi.InterpMate{To: uint64(bases[q]) + uint64(l.offset(q, 0, p.Rank)+l.scratch(goccl.LL)),
				From: uint64(bases[p.Rank]) + uint64(l.offset(p.Rank, 0, q)+l.scratch(goccl.LL))}
		}
	}
	m.Kernel, m.fused = name, f
}

// oneLane reports whether all channels run all of the code, each chunk in one slice.
func oneLane(p *plan.Program) bool {
	return len(p.Lanes) == 1 && p.Lanes[0].Mod == 1 && p.Lanes[0].Lo == 0 && int(p.Lanes[0].Hi) == len(p.Code) && p.Geom.Slices == 1 && p.Geom.D == 1
}

// is reports whether expression e is the number v, whatever the channel and the turn.
func is(p *plan.Program, e uint16, v int) bool {
	x := p.Exprs[e]
	return x.P < 0 && x.B == 0 && x.T < 0 && p.Eval(e, 0, 0) == v
}

// pushes reports whether p begins with a move of the input into this rank's slot at
// every other rank, and into this rank's block of the output when blocks are
// gathered.
func pushes(p *plan.Program) bool {
	in := &p.Code[0]
	if in.Op != plan.MOVE || in.NSrc != 1 || in.Flags&plan.Post != 0 || !is(p, in.Chunk, 0) {
		return false
	}
	if src := p.Opnds[in.Src]; src.Kind != plan.In || !is(p, src.Chunk, 0) {
		return false
	}
	dst := p.Opnds[in.Dst : int(in.Dst)+int(in.NDst)]
	if p.Geom.Base == plan.PerRank {
		if len(dst) == 0 || dst[0].Kind != plan.Out || !is(p, dst[0].Chunk, p.Rank) {
			return false
		}
		dst = dst[1:]
	}
	told := map[int]bool{}
	for _, o := range dst {
		q := -1
		for r := range p.NRanks {
			if o.Kind == plan.PeerScratch && r != p.Rank && is(p, o.Peer, r) && is(p, o.Slot, p.Rank) {
				q = r
			}
		}
		if q < 0 || told[q] {
			return false
		}
		told[q] = true
	}
	return len(told) == p.NRanks-1
}

// reducesSlots reports whether the rest of p is one move that reduces all slots, and
// the input in its place, into the output.
func reducesSlots(p *plan.Program) bool {
	in := &p.Code[1]
	if p.Geom.Base != plan.Whole || len(p.Code) != 2 || in.Op != plan.MOVE || int(in.NSrc) != p.NRanks || in.NDst != 1 || !is(p, in.Chunk, 0) ||
		in.Flags&plan.Pre != p.Code[0].Flags&plan.Pre {
		return false
	}
	for q, o := range p.Opnds[in.Src : int(in.Src)+p.NRanks] {
		switch {
		case q == p.Rank && (o.Kind != plan.In || !is(p, o.Chunk, 0)), q != p.Rank && (o.Kind != plan.Scratch || !is(p, o.Slot, q)):
			return false
		}
	}
	out := p.Opnds[in.Dst]
	return out.Kind == plan.Out && is(p, out.Chunk, 0)
}

// copiesSlots reports whether the rest of p copies the slot of every other rank to its
// block of the output.
func copiesSlots(p *plan.Program) bool {
	if p.Geom.Base != plan.PerRank || len(p.Code) != p.NRanks || p.Code[0].Flags != 0 {
		return false
	}
	done := map[int]bool{}
	for _, in := range p.Code[1:] {
		if in.Op != plan.MOVE || in.NSrc != 1 || in.NDst != 1 || in.Flags != 0 {
			return false
		}
		src, dst := p.Opnds[in.Src], p.Opnds[in.Dst]
		for q := range p.NRanks {
			if q != p.Rank && src.Kind == plan.Scratch && is(p, src.Slot, q) && dst.Kind == plan.Out && is(p, dst.Chunk, q) {
				done[q] = true
			}
		}
	}
	return len(done) == p.NRanks-1
}
