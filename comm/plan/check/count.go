package check

import (
	"github.com/goccl/goccl/comm/plan"
)

// counts is how far one channel of a Program advances what it shares: posts or
// receives of each connector, rings or takes of each signal, both of each
// semaphore.
type counts struct {
	conns, sigs   []uint64
	posted, taken []uint64
	steps         uint64
}

// count derives the counts at one size from the code alone, without running it:
// per iteration times iterations, plus what stands outside the loop.
func count(p *plan.Program, ch int, unit int64, most uint64) (counts, bool) {
	row := &p.Rows[ch]
	c := counts{conns: make([]uint64, row.ConnN), sigs: make([]uint64, row.SigN), posted: make([]uint64, p.Sems), taken: make([]uint64, p.Sems)}
	_, n := p.Geom.Span(unit, ch, len(p.Rows))
	iters := uint64(p.Geom.Iters(n))
	for _, l := range lanesOf(p, ch) {
		loop, rep := uint64(1), uint64(1)
		inRep := false
		for pc := p.Lanes[l].Lo; pc < p.Lanes[l].Hi; pc++ {
			in := &p.Code[pc]
			times := loop * rep
			switch in.Op {
			case plan.LOOP:
				loop = iters
			case plan.REP:
				inRep, rep = true, uint64(max(p.Eval(in.Chunk, ch, 0), 0))
			case plan.END:
				if inRep {
					inRep, rep = false, 1
				} else {
					loop = 1
				}
			default:
				c.instr(p, in, times)
			}
			if iters > most || rep > most || c.steps > most {
				return c, false
			}
		}
	}
	return c, true
}

// instr adds one instruction that runs the given number of times.
func (c *counts) instr(p *plan.Program, in *plan.Instr, times uint64) {
	c.steps += times
	switch in.Op {
	case plan.MOVE:
		slices := times * uint64(p.Geom.Slices)
		c.steps += slices
		for _, os := range [][]plan.Operand{p.Opnds[in.Src : int(in.Src)+int(in.NSrc)], p.Opnds[in.Dst : int(in.Dst)+int(in.NDst)]} {
			for _, o := range os {
				if o.Kind == plan.FifoSend || o.Kind == plan.FifoRecv {
					c.conns[o.Conn] += slices
				}
			}
		}
	case plan.SIGNAL, plan.WAIT:
		c.sigs[in.Word] += times * uint64(in.Delta)
	case plan.POSTL:
		c.posted[in.Word] += times * uint64(in.Delta)
	case plan.WAITL:
		c.taken[in.Word] += times * uint64(in.Delta)
	}
}

// advances compares the two ends of every connector, signal and semaphore.
func (o *operation) advances(most int) *Violation {
	all := make([][]counts, len(o.progs))
	for r, p := range o.progs {
		if p == nil {
			continue
		}
		for ch := range p.Rows {
			c, ok := count(p, ch, o.unit, uint64(most))
			if !ok {
				return atRank(Runaway, r, "channel %d: more than %d steps", ch, most)
			}
			for i := range c.posted {
				if c.posted[i] != c.taken[i] {
					return atRank(Unequal, r, "channel %d: semaphore %d is posted %d times and taken %d times", ch, i, c.posted[i], c.taken[i])
				}
			}
			all[r] = append(all[r], c)
		}
	}
	for r, p := range o.progs {
		if p == nil {
			continue
		}
		for ch, row := range p.Rows {
			for i, c := range p.Conns[row.ConnLo : row.ConnLo+row.ConnN] {
				j := connIndex(o.progs[c.Peer], ch, plan.Conn{Peer: int32(r), Send: !c.Send, Index: c.Index, Proto: c.Proto})
				if mine, theirs := all[r][ch].conns[i], all[c.Peer][ch].conns[j]; mine != theirs {
					return atRank(Unequal, r, "channel %d: the connector with rank %d advances by %d here and by %d there", ch, c.Peer, mine, theirs)
				}
			}
			for i, s := range p.Sigs[row.SigLo : row.SigLo+row.SigN] {
				j := sigIndex(o.progs[s.Peer], ch, plan.Sig{Peer: int32(r), Out: !s.Out, Word: s.Word})
				if mine, theirs := all[r][ch].sigs[i], all[s.Peer][ch].sigs[j]; mine != theirs {
					return atRank(Unequal, r, "channel %d: signal word %d with rank %d advances by %d here and by %d there", ch, s.Word, s.Peer, mine, theirs)
				}
			}
		}
	}
	return nil
}
