package check

import (
	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/plan"
)

// Alias says how input and output of a call lie to each other.
type Alias uint8

// The alias modes. In place means that input and output are the same buffer, or
// that the smaller one is this rank's own block of the larger. Mixed: even ranks
// in place, odd ones not, for ranks need not agree.
const (
	OutOfPlace Alias = iota
	InPlace
	Mixed
)

// String returns the name in lower case.
func (a Alias) String() string { return [...]string{"out of place", "in place", "mixed"}[a] }

// Aliases lists the alias modes of a Program that are worth a run. Mixed is one
// only where ranks touch each other's buffers: elsewhere what a rank sends is the
// same in both modes, so no peer can tell them apart.
func Aliases(p *plan.Program) []Alias {
	switch p.Key.Coll {
	case goccl.AllToAll, goccl.SendRecv, goccl.Barrier:
		return []Alias{OutOfPlace}
	}
	if p.Key.Window != plan.WindowNone {
		return []Alias{OutOfPlace, InPlace, Mixed}
	}
	return []Alias{OutOfPlace, InPlace}
}

// operation is one collective over all ranks at one size.
type operation struct {
	progs   []*plan.Program
	unit    int64
	alias   Alias
	key     plan.Key
	in, out []view // by rank, once it has begun
	started []stamp
	met     bool // so far every rank ended after all had begun
}

func newOperation(progs []*plan.Program, unit int64, alias Alias) *operation {
	o := &operation{progs: progs, unit: unit, alias: alias, met: true}
	for _, p := range progs {
		if p != nil {
			o.key = p.Key
			break
		}
	}
	o.in, o.out, o.started = make([]view, len(progs)), make([]view, len(progs)), make([]stamp, len(progs))
	return o
}

// blocks returns how many blocks of one unit the buffers of a rank have, 0 when it
// has no such buffer.
func (o *operation) blocks(r int) (in, out int) {
	n := len(o.progs)
	if o.progs[r].Geom.Base == plan.Whole {
		n = 1
	}
	root := 0
	if r == int(o.key.Root) {
		root = 1
	}
	if len(o.progs) == 1 {
		return 1, 1
	}
	switch o.key.Coll {
	case goccl.Reduce:
		return 1, root
	case goccl.Broadcast:
		return root, 1
	case goccl.AllGather:
		return 1, n
	case goccl.ReduceScatter:
		return n, 1
	case goccl.AllToAll:
		return n, n
	case goccl.Gather:
		return 1, n * root
	case goccl.Scatter:
		return n * root, 1
	case goccl.SendRecv:
		if o.progs[r].Key.Send {
			return 1, 0
		}
		return 0, 1
	}
	return 1, 1
}

// makeBuffers makes the buffers of a rank, last written by its user.
func (o *operation) makeBuffers(r int, now stamp, t *terms) {
	ins, outs := o.blocks(r)
	in, out := int64(ins)*o.unit, int64(outs)*o.unit
	own := int64(r) * o.unit
	same := o.alias == InPlace || o.alias == Mixed && r%2 == 0
	switch {
	case same && ins > 0 && outs > 0 && ins <= outs:
		s := newSpace(out, now)
		o.out[r], o.in[r] = view{s: s, n: out}, view{s: s, n: in}
		if ins < outs {
			o.in[r].off = own
		}
	case same && ins > 0 && outs > 0:
		s := newSpace(in, now)
		o.in[r], o.out[r] = view{s: s, n: in}, view{s: s, off: own, n: out}
	default:
		if ins > 0 {
			o.in[r] = view{s: newSpace(in, now), n: in}
		}
		if outs > 0 {
			o.out[r] = view{s: newSpace(out, now), n: out}
		}
	}
	if v := o.in[r]; v.s != nil {
		v.s.fill(v.off, v.n, t.input(r))
	}
}

// ended notes whether the user of rank r now knows that every rank has begun.
func (o *operation) ended(r int, u clock) {
	for _, s := range o.started {
		if s.at == 0 || !u.after(s) {
			o.met = false
			return
		}
	}
}
