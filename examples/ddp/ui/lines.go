package ui

import (
	"fmt"
	"io"
	"sync"
)

// Lines is a Display of plain lines, for logs and pipes.
type Lines struct {
	mu     sync.Mutex
	out    io.Writer
	plan   Plan
	next   int // the step from which on the next line is due
	closed bool
}

var _ Display = (*Lines)(nil)

// NewLines writes to out. It begins with a line that explains the rest.
func NewLines(out io.Writer, p Plan) *Lines {
	p.Every = max(1, p.Every)
	fmt.Fprintf(out, "%s: %d steps, %d epochs", p.Title, p.Steps, p.Epochs)
	if p.Ranks > 0 {
		fmt.Fprint(out, "; of each rank: % of time in compute/communication/blocked")
	}
	fmt.Fprintln(out)
	return &Lines{out: out, plan: p, next: p.Every}
}

// Update writes a line if one is due.
func (l *Lines) Update(s Status) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || s.Step < l.next && s.Step < l.plan.Steps {
		return
	}
	for l.next <= s.Step {
		l.next += l.plan.Every
	}
	fmt.Fprintf(l.out, "step %d/%d  epoch %d/%d  %s%s\n", s.Step, l.plan.Steps, s.Epoch, l.plan.Epochs, summary(s), ranksBrief(s.Ranks))
}

// Note writes line.
func (l *Lines) Note(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		fmt.Fprintln(l.out, line)
	}
}

// Close ends the display.
func (l *Lines) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
}
