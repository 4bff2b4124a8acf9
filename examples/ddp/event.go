package main

import (
	"bytes"
	"encoding/json"
	"io"
	"sync"

	"github.com/goccl/goccl/examples/ddp/ui"
)

// event is a line of JSON that rank 0 writes to its standard output when this
// program started it: one call of a sink.
type event struct {
	Plan   *ui.Plan   `json:"plan,omitempty"`
	Status *ui.Status `json:"status,omitempty"`
	Note   string     `json:"note,omitempty"`
	Report string     `json:"report,omitempty"`
}

// wire is the sink that turns calls into events.
type wire struct {
	mu  sync.Mutex
	out io.Writer
}

var _ sink = (*wire)(nil)

func (w *wire) Begin(p ui.Plan)    { w.send(event{Plan: &p}) }
func (w *wire) Update(s ui.Status) { w.send(event{Status: &s}) }
func (w *wire) Note(line string)   { w.send(event{Note: line}) }
func (w *wire) Report(text string) { w.send(event{Report: text}) }

// send writes e as one line. What cannot be written is lost: progress is no reason
// to fail, and a parent that is gone takes its ranks with it.
func (w *wire) send(e event) {
	line, err := json.Marshal(e)
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _ = w.out.Write(append(line, '\n'))
}

// replay is what the ranks' standard output goes to: it turns events back into
// calls of a sink, and other lines, which nobody is expected to write, into notes.
type replay struct{ to sink }

// Write takes whole lines, as launch.Spec.Stdout gets them.
func (r replay) Write(p []byte) (int, error) {
	for line := range bytes.Lines(p) {
		r.line(bytes.TrimSuffix(line, []byte("\n")))
	}
	return len(p), nil
}

func (r replay) line(line []byte) {
	body := line
	if _, after, ok := bytes.Cut(line, []byte("] ")); ok && bytes.HasPrefix(line, []byte("[")) {
		body = after // the launcher's prefix
	}
	var e event
	if err := json.Unmarshal(body, &e); err != nil {
		r.to.Note(string(line))
		return
	}
	switch {
	case e.Plan != nil:
		r.to.Begin(*e.Plan)
	case e.Status != nil:
		r.to.Update(*e.Status)
	case e.Report != "":
		r.to.Report(e.Report)
	default:
		r.to.Note(e.Note)
	}
}
