package check

import (
	"slices"

	"github.com/goccl/goccl/comm/plan"
)

// CheckSequence proves operations that run one after another on one
// communicator: seq[i] holds the Programs of operation i by rank. FIFO steps,
// signal counts and epochs go on from one operation to the next, and each rank
// begins an operation after its own end of the one before, whatever the others
// do. It runs the sequence at several combinations of sizes. The error is a
// *Violation.
func CheckSequence(seq [][]*plan.Program, opt Options) error {
	opt = opt.filled()
	for i, progs := range seq {
		if v := agree(progs); v != nil {
			return v
		}
		if len(progs) != len(seq[0]) {
			return atRank(Disagreement, 0, "operation %d is over %d ranks, operation 0 over %d", i, len(progs), len(seq[0]))
		}
	}
	if len(seq) == 0 {
		return nil
	}
	for _, pick := range picks {
		ops := make([]*operation, len(seq))
		for i, progs := range seq {
			us := lengths(some(progs), opt)
			ops[i] = newOperation(progs, us[min(pick[i%len(pick)], len(us)-1)], OutOfPlace)
		}
		if _, v := prove(ops, opt); v != nil {
			return v
		}
	}
	return nil
}

// picks are the sizes of the operations of a sequence, in turn, as indices of
// lengths: nothing, one element, one full iteration, more iterations than slots.
var picks = [][]int{{0}, {1}, {2}, {3}, {3, 1}, {1, 3}, {0, 2}}

// lengths are four sizes of an operation, from nothing to long.
func lengths(p *plan.Program, opt Options) []int64 {
	if opt.Units != nil {
		return opt.Units
	}
	us := Models(p, opt)
	if len(us) < 4 {
		return us
	}
	g := p.Geom
	full := int64(g.D) * g.ChunkBytes * int64(len(p.Rows))
	if i := slices.Index(us, full); i > 1 && i < len(us)-1 {
		return []int64{us[0], us[1], full, us[len(us)-1]}
	}
	return []int64{us[0], us[1], us[len(us)/2], us[len(us)-1]}
}

// Share reports whether two operations touch anything in common that outlives an
// operation: a connector, a signal word, or scratch of one channel. Only such
// pairs can disturb each other.
func Share(a, b []*plan.Program) bool {
	for r := range a {
		p, q := a[r], b[r]
		if p == nil || q == nil {
			continue
		}
		if p.UsesScratch() && q.UsesScratch() {
			return true
		}
		for ch := range min(len(p.Rows), len(q.Rows)) {
			row := p.Rows[ch]
			for _, c := range p.Conns[row.ConnLo : row.ConnLo+row.ConnN] {
				if connIndex(q, ch, c) >= 0 {
					return true
				}
			}
			for _, s := range p.Sigs[row.SigLo : row.SigLo+row.SigN] {
				if sigIndex(q, ch, s) >= 0 {
					return true
				}
			}
		}
	}
	return false
}
