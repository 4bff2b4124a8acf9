package trace

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccl/goccl"
)

// maxNamed is how many missing ranks a sentence lists.
const maxNamed = 16

// finding is a sentence and how much it explains: a lower weight is nearer to the
// root of the trouble.
type finding struct {
	weight int
	text   string
}

// The weights of findings.
const (
	foundMismatch = iota
	foundRefused
	foundStopped
	foundGone
	foundNotCalled
	foundNotSent
	foundSlow
	foundNothing
)

// Verdict reads the dumps of all ranks, of one group or several, and says in one
// sentence what went wrong: ranks that disagree, a rank that was stopped, one that
// died, one that never called an operation that others wait in.
func Verdict(dumps []*Dump) string {
	var best *finding
	for _, g := range byGroup(dumps) {
		if f := g.judge(); best == nil || f.weight < best.weight {
			best = &f
		}
	}
	if best == nil {
		return "there are no dumps"
	}
	return best.text
}

// judge asks the questions in the order of what explains most.
func (g *group) judge() finding {
	for _, ask := range []func() (finding, bool){g.mismatch, g.refused, g.stopped, g.gone, g.notCalled, g.notSent, g.slow} {
		if f, ok := ask(); ok {
			return f
		}
	}
	text := fmt.Sprintf("all %d ranks of group %q called the same operations in the same order and none is under way", len(g.ranks), g.name)
	for _, d := range g.ranks {
		if d != nil && d.Reason != "" {
			text += "; the dump was made because: " + firstLine(d.Reason)
			break
		}
	}
	return finding{foundNothing, text}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// mismatch looks for the first collective that two ranks called differently.
func (g *group) mismatch() (finding, bool) {
	type call struct {
		rank int
		e    *Entry
	}
	var first *call
	var other call
	seen := make(map[uint64]call)
	for r, d := range g.ranks {
		if d == nil {
			continue
		}
		for i := range d.Entries {
			e := &d.Entries[i]
			if e.P2P || e.State == Refused {
				continue
			}
			was, ok := seen[e.Seq]
			if !ok {
				seen[e.Seq] = call{r, e}
				continue
			}
			if signature(was.e) != signature(e) && (first == nil || e.Seq < first.e.Seq) {
				first, other = &was, call{r, e}
			}
		}
	}
	if first == nil {
		return finding{}, false
	}
	return finding{foundMismatch, fmt.Sprintf("ranks of group %q disagree on operation #%d: %s called %s, %s called %s",
		g.name, first.e.Seq, g.who(first.rank), signature(first.e), g.who(other.rank), signature(other.e))}, true
}

// signature is what all ranks must agree on.
func signature(e *Entry) string {
	text := e.Op
	collective, _ := goccl.ParseCollective(e.Op) // a coalesced operation is none
	if e.Op == goccl.Barrier.String() || e.Op == goccl.AllToAll.String() {
		return text
	}
	// Only the root counts the whole of a gather or scatter.
	if collective == goccl.Gather || collective == goccl.Scatter {
		text += " of " + e.DType
	} else {
		text += fmt.Sprintf(" of %d %s", e.Count, e.DType)
	}
	if e.Redop != "" {
		kind, _, _ := strings.Cut(e.Redop, "(") // ranks may scale differently
		text += " " + kind
	}
	if collective.Rooted() {
		text += fmt.Sprintf(" root %d", e.Root)
	}
	return text
}

// refused looks for a call that was wrong on one rank alone.
func (g *group) refused() (finding, bool) {
	for r, d := range g.ranks {
		if d == nil {
			continue
		}
		for i := range d.Entries {
			if e := &d.Entries[i]; e.State == Refused {
				text := fmt.Sprintf("%s of group %q made a call that was refused, %s", g.who(r), g.name, e.Name())
				if d.Reason != "" { // it names the rank and the call
					text = "a call was refused: " + firstLine(d.Reason)
				}
				return finding{foundRefused, text}, true
			}
		}
	}
	return finding{}, false
}

// stopped looks for a rank that another one saw stopped.
func (g *group) stopped() (finding, bool) {
	l, by := g.lag(Stopped)
	if l == nil {
		return finding{}, false
	}
	text := fmt.Sprintf("%s of group %q was stopped", g.whoIs(l), g.name)
	if l.What != "" {
		text += " (" + l.What + ")"
	}
	if e := g.waits(by); e != nil {
		text += fmt.Sprintf(" while %s waited in %s", g.who(by), e.Name())
	}
	return finding{foundStopped, text + lastBegun(l.Seq)}, true
}

func lastBegun(seq uint64) string {
	if seq == 0 {
		return "; it had called nothing yet"
	}
	return fmt.Sprintf("; its last operation was #%d", seq)
}

// gone looks for ranks that left no dump.
func (g *group) gone() (finding, bool) {
	var missing []int
	for r, d := range g.ranks {
		if d == nil {
			missing = append(missing, r)
		}
	}
	if len(missing) == 0 {
		return finding{}, false
	}
	text := fmt.Sprintf("%s of group %q left no dump: it died or was killed before it could write one", goccl.Ranks(missing), g.name)
	if more := len(missing) - maxNamed; more > 0 {
		text = fmt.Sprintf("%s and %d more of group %q left no dumps: they died or were killed before they could write one",
			goccl.Ranks(missing[:maxNamed]), more, g.name)
	} else if len(missing) > 1 {
		text = fmt.Sprintf("%s of group %q left no dumps: they died or were killed before they could write one", goccl.Ranks(missing), g.name)
	}
	for r, d := range g.ranks {
		if d == nil {
			continue
		}
		i := slices.IndexFunc(d.Lags, func(l Lag) bool { return slices.Contains(missing, l.Rank) })
		if i >= 0 {
			text += "; " + g.who(r) + " saw: " + d.Lags[i].String()
			return finding{foundGone, text}, true
		}
	}
	for r := range g.ranks {
		if e := g.waits(r); e != nil {
			return finding{foundGone, text + fmt.Sprintf("; %s waited in %s", g.who(r), e.Name())}, true
		}
	}
	return finding{foundGone, text}, true
}

// notCalled looks for the rank that is furthest behind a collective which others
// wait in.
func (g *group) notCalled() (finding, bool) {
	waiter := -1
	var e *Entry
	for r := range g.ranks {
		if w := g.waits(r); w != nil && !w.P2P && (e == nil || w.Seq < e.Seq) {
			waiter, e = r, w
		}
	}
	if e == nil {
		return finding{}, false
	}
	late := -1
	for r, d := range g.ranks {
		if d != nil && lastSeq(d) < e.Seq && (late < 0 || lastSeq(d) < lastSeq(g.ranks[late])) {
			late = r
		}
	}
	if late < 0 {
		return finding{}, false
	}
	d := g.ranks[late]
	text := fmt.Sprintf("%s of group %q never called %s, which %s waits in", g.who(late), g.name, e.Name(), g.who(waiter))
	if last := lastCall(d); last != nil {
		text += fmt.Sprintf("; its last was %s", last.Name())
	} else {
		text += "; it has called nothing"
	}
	if at := UserFrame(d.Stacks); at != "" {
		text += ", and it is in " + at
	}
	return finding{foundNotCalled, text}, true
}

// notSent looks for a transfer that waits for one which the peer never began.
func (g *group) notSent() (finding, bool) {
	for r := range g.ranks {
		e := g.waits(r)
		if e == nil || !e.P2P || e.Root < 0 || e.Root >= len(g.ranks) {
			continue
		}
		answer := "recv"
		if e.Op == "recv" {
			answer = "send"
		}
		peer := g.ranks[e.Root]
		if peer == nil || transfers(peer, answer, r) >= transfers(g.ranks[r], e.Op, e.Root) {
			continue
		}
		text := fmt.Sprintf("%s of group %q waits in %s with %s, which never called its %s", g.who(r), g.name, e.Name(), g.who(e.Root), answer)
		if w := g.waits(e.Root); w != nil {
			text += fmt.Sprintf(" and waits itself in %s", w.Name())
		}
		if at := UserFrame(peer.Stacks); at != "" {
			text += "; it is in " + at
		}
		return finding{foundNotSent, text}, true
	}
	return finding{}, false
}

// transfers counts the sends or receives with peer.
func transfers(d *Dump, op string, peer int) int {
	n := 0
	for i := range d.Entries {
		if d.Entries[i].Op == op && d.Entries[i].Root == peer {
			n++
		}
	}
	return n
}

// slow says that something is under way that all ranks have called.
func (g *group) slow() (finding, bool) {
	for r := range g.ranks {
		if e := g.waits(r); e != nil {
			return finding{foundSlow, fmt.Sprintf("%s of group %q waits in %s, which all its ranks have called: the data is slow or a link is stuck",
				g.who(r), g.name, e.Name())}, true
		}
	}
	return finding{}, false
}
