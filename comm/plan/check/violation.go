package check

import "fmt"

// Kind names what is wrong.
type Kind string

// The kinds of violation.
const (
	Malformed    Kind = "malformed Program"
	Disagreement Kind = "ranks disagree"
	Unmatched    Kind = "end without its other end"
	Unequal      Kind = "unequal advance"
	Length       Kind = "message of another length"
	Overflow     Kind = "slot overflow"
	Deadlock     Kind = "deadlock"
	ShortFIFO    Kind = "FIFO too short"
	NoMargin     Kind = "no margin in the FIFO"
	SlotReuse    Kind = "FIFO slot reused too early"
	BankReuse    Kind = "bank reused too early"
	Banked       Kind = "banked region without rendezvous"
	Rendezvous   Kind = "rendezvous flag"
	Barrier      Kind = "barrier passed early"
	Race         Kind = "race"
	Overwritten  Kind = "in-place overwrite"
	Bounds       Kind = "out of bounds"
	Missing      Kind = "output never written"
	Contribution Kind = "contribution missing or repeated"
	Misplaced    Kind = "data at the wrong place"
	Scaling      Kind = "scaled or divided wrongly"
	Order        Kind = "operands in another order"
	Runaway      Kind = "too many steps"
)

// Violation is the error of a Program that is wrong. Channel, Lane and PC are -1
// where the fault has no such place.
type Violation struct {
	Kind    Kind
	Rank    int
	Channel int
	Lane    int
	PC      int
	Text    string
}

// Error says kind, place and details.
func (v *Violation) Error() string {
	s := fmt.Sprintf("check: %s: rank %d", v.Kind, v.Rank)
	if v.Channel >= 0 {
		s += fmt.Sprintf(" channel %d", v.Channel)
	}
	if v.Lane >= 0 {
		s += fmt.Sprintf(" lane %d", v.Lane)
	}
	if v.PC >= 0 {
		s += fmt.Sprintf(" instruction %d", v.PC)
	}
	return s + ": " + v.Text
}

// atRank is a violation of a whole rank.
func atRank(k Kind, rank int, format string, args ...any) *Violation {
	return &Violation{Kind: k, Rank: rank, Channel: -1, Lane: -1, PC: -1, Text: fmt.Sprintf(format, args...)}
}
