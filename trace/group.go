package trace

import (
	"cmp"
	"fmt"
	"slices"
)

// group is the dumps of one group, by rank; nil where there is none.
type group struct {
	name  string
	ranks []*Dump
}

func byGroup(dumps []*Dump) []*group {
	var gs []*group
	for _, d := range dumps {
		i := slices.IndexFunc(gs, func(g *group) bool { return g.name == d.Group && len(g.ranks) == d.Size })
		if i < 0 {
			i = len(gs)
			gs = append(gs, &group{name: d.Group, ranks: make([]*Dump, d.Size)})
		}
		gs[i].ranks[d.Rank] = d
	}
	return gs
}

// waits returns the oldest operation of rank that had not ended when its dump was
// made, or that ended by failure.
func (g *group) waits(rank int) *Entry {
	d := g.ranks[rank]
	if d == nil {
		return nil
	}
	for i := range d.Entries {
		if s := d.Entries[i].State; s == Queued || s == Started || s == Failed {
			return &d.Entries[i]
		}
	}
	return nil
}

// lag returns what some rank saw in the given state, and who saw it.
func (g *group) lag(state string) (*Lag, int) {
	for r, d := range g.ranks {
		if d == nil {
			continue
		}
		for i := range d.Lags {
			if d.Lags[i].State == state {
				return &d.Lags[i], r
			}
		}
	}
	return nil, -1
}

// lastCall returns the last collective of a rank, nil for none.
func lastCall(d *Dump) *Entry {
	var last *Entry
	for i := range d.Entries {
		if e := &d.Entries[i]; !e.P2P && (last == nil || cmp.Compare(e.Seq, last.Seq) > 0) {
			last = e
		}
	}
	return last
}

func lastSeq(d *Dump) uint64 {
	if e := lastCall(d); e != nil {
		return e.Seq
	}
	return 0
}

// who names a rank that left a dump.
func (g *group) who(rank int) string {
	d := g.ranks[rank]
	if d == nil {
		return fmt.Sprintf("rank %d", rank)
	}
	return fmt.Sprintf("rank %d (%s, pid %d)", rank, d.Host, d.PID)
}

// whoIs names a rank that another one saw.
func (g *group) whoIs(l *Lag) string {
	if l.Host == "" {
		return fmt.Sprintf("rank %d", l.Rank)
	}
	return fmt.Sprintf("rank %d (%s, pid %d)", l.Rank, l.Host, l.PID)
}
