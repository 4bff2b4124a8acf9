package machine

import "github.com/goccl/goccl/comm/plan"

// Domain is what a lane acts on. The methods that return a bool report whether
// the action was done; when it was not, they have changed nothing.
type Domain interface {
	// Move moves one slice.
	Move(l *Lane, m *Move) bool
	// Signal adds d to signal sig of the lane's channel.
	Signal(l *Lane, sig int, d uint64)
	// Await takes d from signal sig once it is there.
	Await(l *Lane, sig int, d uint64) bool
	// Post adds d to semaphore sem of the lane's channel.
	Post(l *Lane, sem int, d uint64)
	// Take takes d from semaphore sem once it is there.
	Take(l *Lane, sem int, d uint64) bool
}

// Run steps the lane until it is blocked or finished and reports which, and
// whether it moved at all.
func Run(d Domain, l *Lane) (s Status, moved bool) {
	for {
		switch s = Step(d, l); s {
		case Progressed:
			moved = true
		default:
			return s, moved
		}
	}
}

// Step runs one instruction, or one slice of a MOVE.
func Step(d Domain, l *Lane) Status {
	if l.pc >= l.hi {
		return Finished
	}
	in := &l.Prog.Code[l.pc]
	switch in.Op {
	case plan.MOVE:
		return stepMove(d, l, in)
	case plan.SIGNAL:
		d.Signal(l, int(in.Word), uint64(in.Delta))
	case plan.WAIT:
		if !d.Await(l, int(in.Word), uint64(in.Delta)) {
			return Blocked
		}
	case plan.POSTL:
		d.Post(l, int(in.Word), uint64(in.Delta))
	case plan.WAITL:
		if !d.Take(l, int(in.Word), uint64(in.Delta)) {
			return Blocked
		}
	case plan.LOOP:
		l.k, l.loopPC = 0, l.pc+1
	case plan.REP:
		l.j, l.reps, l.repPC = 0, l.Prog.Eval(in.Chunk, l.Channel, 0), l.pc+1
		if l.reps <= 0 {
			l.reps = -1
			l.pc = skip(l.Prog.Code, l.pc)
			return Progressed
		}
	case plan.END:
		stepEnd(l)
		return Progressed
	}
	l.pc++
	return Progressed
}

// stepMove moves one slice, and goes on to the next instruction after the last.
func stepMove(d Domain, l *Lane, in *plan.Instr) Status {
	if !l.armed {
		l.arm(in)
	}
	if !d.Move(l, &l.move) {
		return Blocked
	}
	l.armed = false
	if l.slice++; l.slice == l.Prog.Geom.Slices {
		l.slice = 0
		l.pc++
	}
	return Progressed
}

// arm works out the current slice of in, once however often it is tried.
func (l *Lane) arm(in *plan.Instr) {
	off, n := l.Prog.Geom.Slice(l.length(in.Chunk), l.slice)
	l.move = Move{
		Srcs:  l.Prog.Opnds[in.Src : int(in.Src)+int(in.NSrc)],
		Dsts:  l.Prog.Opnds[in.Dst : int(in.Dst)+int(in.NDst)],
		Flags: in.Flags, Bytes: int(n), off: off,
	}
	l.armed = true
}

// stepEnd goes back to the start of the innermost loop, or past its end.
func stepEnd(l *Lane) {
	if l.reps >= 0 {
		if l.j++; l.j < l.reps {
			l.pc = l.repPC
			return
		}
		l.j, l.reps = 0, -1
		l.pc++
		return
	}
	if l.k++; l.k < l.iters {
		l.pc = l.loopPC
		return
	}
	l.k = l.iters - 1
	l.pc++
}

// skip returns the instruction after the END of the REP at pc.
func skip(code []plan.Instr, pc int) int {
	for pc++; pc < len(code) && code[pc].Op != plan.END; pc++ {
	}
	return pc + 1
}
