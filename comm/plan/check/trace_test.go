package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccl/goccl/comm/plan"
	"github.com/goccl/goccl/comm/plan/machine"
)

// tracer is a domain that lets everything happen at once and writes down what
// did, with every place resolved. Two Programs with the same traces behave the
// same, whatever their bytes.
type tracer struct {
	b    strings.Builder
	left int
}

// Move writes one slice down. A slice of nothing touches no buffer and computes
// nothing: what is left of it are its messages, which come and go together.
func (t *tracer) Move(l *machine.Lane, m *machine.Move) bool {
	flags := m.Flags
	if m.Bytes == 0 {
		flags = 0
	}
	fmt.Fprintf(&t.b, "move %d %d", m.Bytes, flags)
	for _, os := range [2][]plan.Operand{m.Dsts, m.Srcs} {
		var places []string
		for i := range os {
			r := l.Ref(&os[i])
			switch os[i].Kind {
			case plan.FifoSend, plan.FifoRecv:
				row := &l.Prog.Rows[l.Channel]
				places = append(places, fmt.Sprint(l.Prog.Conns[int(row.ConnLo)+r.Index]))
			case plan.Scratch, plan.PeerScratch:
				places = append(places, fmt.Sprint(r.Kind, r.Index, r.Slot))
			default:
				if m.Bytes > 0 {
					places = append(places, fmt.Sprint(r.Kind, r.Index, r.Off))
				}
			}
		}
		if m.Bytes == 0 {
			slices.Sort(places)
		}
		fmt.Fprint(&t.b, " |", places)
	}
	t.b.WriteString("\n")
	return t.step()
}

// step bounds the trace.
func (t *tracer) step() bool {
	t.left--
	return t.left > 0
}

func (t *tracer) sig(l *machine.Lane, sig int) plan.Sig {
	return l.Prog.Sigs[int(l.Prog.Rows[l.Channel].SigLo)+sig]
}

func (t *tracer) Signal(l *machine.Lane, sig int, d uint64) {
	fmt.Fprintf(&t.b, "signal %v %d\n", t.sig(l, sig), d)
}

func (t *tracer) Await(l *machine.Lane, sig int, d uint64) bool {
	fmt.Fprintf(&t.b, "wait %v %d\n", t.sig(l, sig), d)
	return t.step()
}

func (t *tracer) Post(_ *machine.Lane, sem int, d uint64) { fmt.Fprintf(&t.b, "post %d %d\n", sem, d) }

func (t *tracer) Take(_ *machine.Lane, sem int, d uint64) bool {
	fmt.Fprintf(&t.b, "take %d %d\n", sem, d)
	return t.step()
}

var _ machine.Domain = (*tracer)(nil)

// trace is everything that p does at the given sizes, and what it says of itself.
func trace(p *plan.Program, units []int64) string {
	t := &tracer{left: 1 << 20}
	fmt.Fprintf(&t.b, "%v %d %d %v\n", p.Key, p.Rank, p.NRanks, p.Rendezvous)
	for _, unit := range units {
		for ch := range p.Rows {
			for _, lane := range lanesOf(p, ch) {
				fmt.Fprintf(&t.b, "unit %d channel %d lane\n", unit, ch)
				var l machine.Lane
				l.Reset(p, ch, lane, unit)
				machine.Run(t, &l)
			}
		}
	}
	return t.b.String()
}

// sizes are the small models of p and some larger sizes, for traces.
func sizes(p *plan.Program) []int64 {
	us := Models(p, Options{})
	if p.Loops() {
		full := int64(p.Geom.D) * p.Geom.ChunkBytes * int64(len(p.Rows))
		us = append(us, 7*full+p.Geom.Grain+4, 11*full-4, 13*full)
	}
	return slices.Compact(us)
}
