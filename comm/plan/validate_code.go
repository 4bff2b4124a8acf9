package plan

import "fmt"

func (v validator) lanes() string {
	p := v.p
	for pc := range p.Code {
		if in := &p.Code[pc]; in.Op == 0 || in.Op >= numCodes {
			return fmt.Sprintf("instruction %d: %v", pc, in.Op)
		} else if bad := v.unused(in); bad != "" {
			return fmt.Sprintf("instruction %d: %v with %s", pc, in.Op, bad)
		}
	}
	for i := range p.Opnds {
		if bad := v.operand(&p.Opnds[i]); bad != "" {
			return fmt.Sprintf("operand %d: %s", i, bad)
		}
	}
	for i, l := range p.Lanes {
		switch {
		case l.Agent > CEAgent || l.Mod == 0 || l.Rem >= l.Mod:
			return fmt.Sprintf("lane %d: agent %d, channels %d mod %d", i, l.Agent, l.Rem, l.Mod)
		case l.Lo > l.Hi || int(l.Hi) > len(p.Code):
			return fmt.Sprintf("lane %d: instructions %d to %d of %d", i, l.Lo, l.Hi, len(p.Code))
		}
		if bad := v.nesting(l); bad != "" {
			return fmt.Sprintf("lane %d: %s", i, bad)
		}
		for pc := l.Lo; pc < l.Hi; pc++ {
			if bad := v.instr(l, &p.Code[pc]); bad != "" {
				return fmt.Sprintf("lane %d, instruction %d: %s", i, pc, bad)
			}
		}
	}
	return ""
}

// unused names a field that in does not use and that is not zero.
func (v validator) unused(in *Instr) string {
	move := in.Op == MOVE
	words := in.Op == SIGNAL || in.Op == WAIT || in.Op == POSTL || in.Op == WAITL
	switch {
	case !move && (in.Flags != 0 || in.NSrc != 0 || in.NDst != 0 || in.Src != 0 || in.Dst != 0):
		return "operands or flags"
	case !move && in.Op != REP && in.Chunk != 0:
		return "a chunk"
	case !words && (in.Word != 0 || in.Delta != 0):
		return "a word"
	}
	return ""
}

// nesting checks LOOP, REP and END: REP stands at the top or inside LOOP, LOOP at
// the top.
func (v validator) nesting(l Lane) string {
	loop, rep := false, false
	for pc := l.Lo; pc < l.Hi; pc++ {
		switch v.p.Code[pc].Op {
		case LOOP:
			if loop || rep {
				return fmt.Sprintf("LOOP inside a loop at %d", pc)
			}
			loop = true
		case REP:
			if rep {
				return fmt.Sprintf("REP inside REP at %d", pc)
			}
			rep = true
		case END:
			switch {
			case rep:
				rep = false
			case loop:
				loop = false
			default:
				return fmt.Sprintf("END of nothing at %d", pc)
			}
		}
	}
	if loop || rep {
		return "a loop without END"
	}
	return ""
}

func (v validator) operand(o *Operand) string {
	n := uint16(min(len(v.p.Exprs), 1<<16-1))
	fifo := o.Kind == FifoSend || o.Kind == FifoRecv
	peer := o.Kind == PeerScratch || o.Kind == PeerIn || o.Kind == PeerOut
	slot := o.Kind == Scratch || o.Kind == PeerScratch
	chunk := o.Kind == In || o.Kind == Out || o.Kind == PeerIn || o.Kind == PeerOut
	switch {
	case o.Kind == 0 || o.Kind >= numKinds:
		return o.Kind.String()
	case !fifo && o.Conn != 0, !peer && o.Peer != 0, !slot && o.Slot != 0, !chunk && o.Chunk != 0:
		return fmt.Sprintf("%v has a field that it does not use", o.Kind)
	case peer && o.Peer >= n, slot && o.Slot >= n, chunk && o.Chunk >= n:
		return fmt.Sprintf("%v: expression out of range", o.Kind)
	}
	return ""
}

func (v validator) instr(l Lane, in *Instr) string {
	switch in.Op {
	case MOVE:
		return v.move(l, in)
	case SIGNAL, WAIT:
		for ch := int(l.Rem); ch < len(v.p.Rows); ch += int(l.Mod) {
			r := &v.p.Rows[ch]
			if in.Word >= r.SigN || v.p.Sigs[r.SigLo+in.Word].Out != (in.Op == SIGNAL) {
				return fmt.Sprintf("channel %d has no signal %d for %v", ch, in.Word, in.Op)
			}
		}
	case POSTL, WAITL:
		if int(in.Word) >= v.p.Sems {
			return fmt.Sprintf("semaphore %d of %d", in.Word, v.p.Sems)
		}
	case REP:
		if int(in.Chunk) >= len(v.p.Exprs) {
			return "expression of the count out of range"
		}
		return ""
	default:
		return ""
	}
	if in.Op != MOVE && in.Delta == 0 {
		return fmt.Sprintf("%v of nothing", in.Op)
	}
	return ""
}

func (v validator) move(l Lane, in *Instr) string {
	p := v.p
	switch {
	case in.NSrc == 0 || in.NDst == 0:
		return "MOVE without a source or a destination"
	case int(in.Src)+int(in.NSrc) > len(p.Opnds) || int(in.Dst)+int(in.NDst) > len(p.Opnds):
		return "operands out of range"
	case int(in.Chunk) >= len(p.Exprs):
		return "expression of the chunk out of range"
	case in.Flags&^(Pre|Post) != 0:
		return fmt.Sprintf("flags %#x", in.Flags)
	case l.Agent == CEAgent && (in.NSrc != 1 || in.NDst != 1 || in.Flags != 0):
		return "a copy engine copies from one place to one other"
	}
	srcs, dsts := p.Opnds[in.Src:int(in.Src)+int(in.NSrc)], p.Opnds[in.Dst:int(in.Dst)+int(in.NDst)]
	ins := 0
	for _, o := range srcs {
		switch o.Kind {
		case In:
			ins++
		case FifoRecv, Scratch, PeerIn:
		default:
			return fmt.Sprintf("%v as a source", o.Kind)
		}
	}
	if in.Flags&Pre != 0 && ins != 1 {
		return fmt.Sprintf("PRE with %d sources of kind in", ins)
	}
	for _, o := range dsts {
		switch o.Kind {
		case Out, FifoSend, PeerScratch, PeerOut:
		default:
			return fmt.Sprintf("%v as a destination", o.Kind)
		}
	}
	if bad := v.ends(l, srcs, false); bad != "" {
		return bad
	}
	return v.ends(l, dsts, true)
}

// ends checks the FIFO operands of one side of a MOVE in every channel of l.
func (v validator) ends(l Lane, os []Operand, send bool) string {
	seen := map[uint16]bool{}
	for _, o := range os {
		if o.Kind != FifoSend && o.Kind != FifoRecv {
			continue
		}
		if seen[o.Conn] {
			return fmt.Sprintf("connector %d twice in one MOVE", o.Conn)
		}
		seen[o.Conn] = true
		for ch := int(l.Rem); ch < len(v.p.Rows); ch += int(l.Mod) {
			r := &v.p.Rows[ch]
			if o.Conn >= r.ConnN || v.p.Conns[r.ConnLo+o.Conn].Send != send {
				return fmt.Sprintf("channel %d has no connector %d for %v", ch, o.Conn, o.Kind)
			}
		}
	}
	return ""
}
