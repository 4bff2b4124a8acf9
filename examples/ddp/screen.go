package main

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/goccl/goccl/examples/ddp/ui"
)

// sink takes what rank 0 has to say about the run. Its methods may be called from
// several goroutines.
type sink interface {
	Begin(ui.Plan)    // a part of the run begins, and the one before it is over
	Update(ui.Status) // of the present part
	Note(line string)
	Report(text string) // the last word
}

// screen is the sink that a person reads.
type screen struct {
	out, err io.Writer

	mu      sync.Mutex
	display ui.Display // nil: none is open
}

var _ sink = (*screen)(nil)

// Begin opens the display of another part.
func (s *screen) Begin(p ui.Plan) {
	s.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.display = ui.New(s.out, p)
}

// Update shows how far the present part has come.
func (s *screen) Update(status ui.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.display != nil {
		s.display.Update(status)
	}
}

// Note shows a line of its own.
func (s *screen) Note(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.display != nil {
		s.display.Note(line)
		return
	}
	fmt.Fprintln(s.out, line)
}

// Report ends the display and writes text.
func (s *screen) Report(text string) {
	s.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, "\n%s", text)
}

// Close ends the display, if one is open. The screen goes on taking lines.
func (s *screen) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.display != nil {
		s.display.Close()
		s.display = nil
	}
}

// complaints is where the ranks' standard error goes: above the bar while there is
// one, so that the two do not mix.
type complaints struct{ *screen }

// Write takes whole lines, as launch.Spec.Stderr gets them.
func (c complaints) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.display == nil {
		return c.err.Write(p)
	}
	c.display.Note(strings.TrimSuffix(string(p), "\n"))
	return len(p), nil
}

// nobody is the sink of ranks that have nothing to say.
type nobody struct{}

func (nobody) Begin(ui.Plan)    {}
func (nobody) Update(ui.Status) {}
func (nobody) Note(string)      {}
func (nobody) Report(string)    {}
