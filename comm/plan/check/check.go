package check

import (
	"fmt"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/plan"
)

// Report is what a survey found.
type Report struct {
	Models     int  // runs: sizes times alias modes
	Steps      int  // of lanes, in all runs
	Slots      int  // FIFO depth at which nothing deadlocks; 0: no FIFO is used
	Rendezvous bool // the end on any rank comes after the start on every rank
}

// Check proves one operation: progs holds the Program of each rank, nil for the
// ranks that a SendRecv does not concern. The error is a *Violation, nil when all
// claims of the package comment hold.
func Check(progs []*plan.Program, opt Options) error {
	_, err := Survey(progs, opt)
	return err
}

// Survey is Check that also tells what it found on the way.
func Survey(progs []*plan.Program, opt Options) (Report, error) {
	opt = opt.filled()
	rep, v := survey(progs, opt)
	if v != nil {
		return rep, v
	}
	return rep, nil
}

func survey(progs []*plan.Program, opt Options) (rep Report, v *Violation) {
	if v := agree(progs); v != nil {
		return rep, v
	}
	p := some(progs)
	units, aliases := opt.Units, opt.Aliases
	if units == nil || p.Key.Coll == goccl.Barrier {
		units = Models(p, opt)
	}
	if aliases == nil {
		aliases = Aliases(p)
	}
	rep.Rendezvous = true
	for _, unit := range units {
		if unit > p.Geom.ChunkBytes && !p.Loops() {
			continue
		}
		for _, alias := range aliases {
			ops := []*operation{newOperation(progs, unit, alias)}
			steps, v := prove(ops, opt)
			rep.Models++
			rep.Steps += steps
			if v != nil {
				return rep, v
			}
			rep.Rendezvous = rep.Rendezvous && ops[0].met
		}
	}
	if v := meeting(p, rep.Rendezvous); v != nil {
		return rep, v
	}
	v = depth(progs, units, opt, &rep)
	return rep, v
}

// some returns the Program of the first rank that has one.
func some(progs []*plan.Program) *plan.Program {
	for _, p := range progs {
		if p != nil {
			return p
		}
	}
	return nil
}

// meeting compares what a Program says of itself with what its runs showed.
func meeting(p *plan.Program, met bool) *Violation {
	if p.Key.Coll == goccl.Barrier && !met {
		return atRank(Barrier, p.Rank, "%v: a rank can end before all others have begun", p.Key)
	}
	if p.UsesScratch() && !met {
		return atRank(Banked, p.Rank, "%v uses scratch, but a rank can end before all others have begun: a bank can be written again while it is read", p.Key)
	}
	if p.Rendezvous != met {
		return atRank(Rendezvous, p.Rank, "%v says rendezvous %v; the order of its events says %v", p.Key, p.Rendezvous, met)
	}
	return nil
}

// depth finds the FIFO depth that the Programs need. Results do not depend on the
// depth, only whether all is done, and the most iterations need the most slots.
func depth(progs []*plan.Program, units []int64, opt Options, rep *Report) *Violation {
	used := false
	for _, p := range progs {
		used = used || p != nil && len(p.Conns) > 0
	}
	if !used || len(units) == 0 {
		return nil
	}
	rep.Slots = opt.Slots
	for less := opt; rep.Slots > 1; rep.Slots-- {
		less.Slots = rep.Slots - 1
		ops := []*operation{newOperation(progs, units[len(units)-1], OutOfPlace)}
		w := newWorld(less, ops, &terms{})
		v := w.run()
		rep.Steps += w.steps
		if v != nil {
			break
		}
	}
	if opt.Margin && opt.Slots > 1 && rep.Slots == opt.Slots {
		return atRank(NoMargin, some(progs).Rank, "%v needs all %d slots", some(progs).Key, opt.Slots)
	}
	return nil
}

// prove runs operations one after another at given sizes. When something is
// wrong it runs them again, to say more about it.
func prove(ops []*operation, opt Options) (steps int, v *Violation) {
	for _, o := range ops {
		if v := o.advances(opt.MaxSteps); v != nil {
			return 0, v.with(o, opt)
		}
	}
	w := newWorld(opt, ops, &terms{})
	v, i := w.prove()
	if v == nil {
		return w.steps, nil
	}
	again := make([]*operation, len(ops))
	for i, o := range ops {
		again[i] = newOperation(o.progs, o.unit, o.alias)
	}
	if v.Kind == Deadlock {
		deep := opt
		deep.Slots = 8 * opt.Slots
		if more, _ := newWorld(deep, again, &terms{}).prove(); more == nil {
			v.Kind = ShortFIFO
		}
		return w.steps, v.with(ops[i], opt)
	}
	if told, j := newWorld(opt, again, &terms{kids: map[hash]node{}}).prove(); told != nil {
		v, i = told, j
	}
	return w.steps, v.with(ops[i], opt)
}

// prove runs the world, then looks at the results. It also returns the index of
// the operation that the violation belongs to.
func (w *world) prove() (*Violation, int) {
	if v := w.run(); v != nil {
		return v, min(w.ranks[v.Rank].op, len(w.ops)-1)
	}
	for i, o := range w.ops {
		if v := o.results(w.terms); v != nil {
			return v, i
		}
	}
	return nil, 0
}

// with adds the size at which it happened.
func (v *Violation) with(o *operation, opt Options) *Violation {
	v.Text += fmt.Sprintf(" (%v, %d bytes, %v, %d slots)", o.key, o.unit, o.alias, opt.Slots)
	return v
}
