package ui

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Status is how far training has come. The display keeps it: do not change it
// after Update.
type Status struct {
	Step             int // steps done
	Epoch            int // from 1
	Loss             float64
	SamplesPerSecond float64
	Ranks            []Shares
}

// Shares is what a rank did since the status before, each as a part of that time
// between 0 and 1. Communication runs beside computation, so they do not add up to
// one; Blocked is the part in which the rank could do nothing but wait for it.
type Shares struct{ Compute, Communication, Blocked float64 }

// Display shows progress. Its methods may be called from several goroutines.
type Display interface {
	Update(Status)    // shows s, at once or with the next refresh
	Note(line string) // shows a line of its own, above the bar
	Close()           // leaves the last state on screen; later calls do nothing
}

// Plan is what a display must know beforehand.
type Plan struct {
	Title  string
	Ranks  int // whose shares are shown; 0: no one's
	Steps  int // in all
	Epochs int
	Every  int // plain lines: one every so many steps, and one for the last
}

// IsTerminal says whether f is a terminal.
func IsTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// New returns a progress bar if out is a terminal and plain lines if not.
func New(out io.Writer, p Plan) Display {
	if f, ok := out.(*os.File); ok && IsTerminal(f) {
		return NewBar(out, p)
	}
	return NewLines(out, p)
}

// summary is the loss and speed of s.
func summary(s Status) string {
	return fmt.Sprintf("loss %.4f  %.0f samples/s", s.Loss, s.SamplesPerSecond)
}

// rankLine is what rank does, in one line.
func rankLine(rank int, s Shares) string {
	return fmt.Sprintf("rank %d  compute %3.0f %%  communication %3.0f %%  blocked %3.0f %%",
		rank, 100*s.Compute, 100*s.Communication, 100*s.Blocked)
}

// ranksBrief is what all ranks do, as compute/communication/blocked.
func ranksBrief(ranks []Shares) string {
	var b strings.Builder
	for i, s := range ranks {
		fmt.Fprintf(&b, "  rank %d %.0f/%.0f/%.0f", i, 100*s.Compute, 100*s.Communication, 100*s.Blocked)
	}
	return b.String()
}
