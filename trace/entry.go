package trace

import (
	"fmt"
	"time"
)

// The states of an operation in the recorder.
const (
	Queued  = "queued"  // called; the backend has not begun it
	Started = "started" // the backend moves data
	Done    = "done"
	Failed  = "failed"
	Refused = "refused" // never reached the backend: the call was wrong
)

// The states of a rank, as another rank sees it.
const (
	Running  = "running"   // the process runs: it has simply not called the operation
	Stopped  = "stopped"   // stopped by a signal or a debugger
	Gone     = "gone"      // the process has ended
	NoAnswer = "no answer" // nothing is known
)

// Entry is one operation of one rank as the flight recorder keeps it. Times
// that are not reached yet are zero.
type Entry struct {
	Seq     uint64    `json:"seq"`           // from 1; collectives and point-to-point operations count apart
	P2P     bool      `json:"p2p,omitempty"` // a send, a receive or a batch of them: its Seq counts on this rank only
	Op      string    `json:"op"`            // "allreduce", "send", "recv", "batch", ...
	DType   string    `json:"dtype,omitempty"`
	Count   int64     `json:"count"` // elements of the larger of input and output
	Bytes   int64     `json:"bytes"`
	Redop   string    `json:"redop,omitempty"`
	Root    int       `json:"root"` // root or peer, a rank of the group; -1 where there is none
	Parts   int       `json:"parts,omitempty"`
	Label   string    `json:"label,omitempty"`
	Algo    string    `json:"algo,omitempty"`
	Proto   string    `json:"proto,omitempty"`
	State   string    `json:"state"`
	Queued  time.Time `json:"queued,omitzero"`
	Started time.Time `json:"started,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
}

// Name returns the operation with its number, for example "allreduce #12".
func (e *Entry) Name() string { return fmt.Sprintf("%s #%d", e.Op, e.Seq) }

// Lag is a rank that an operation waits for. Rank is a rank of the group, Seq
// the last collective it has begun, State one of the states of a rank, and What
// a remark such as the signal that stopped it.
type Lag struct {
	Rank  int    `json:"rank"`
	Host  string `json:"host,omitempty"`
	PID   int    `json:"pid,omitempty"`
	Seq   uint64 `json:"seq"`
	State string `json:"state"`
	What  string `json:"what,omitempty"`
}

// String returns, for example, "rank 2 (node1, pid 81) is stopped, last at #11".
func (l Lag) String() string {
	where := ""
	switch {
	case l.Host != "" && l.PID > 0:
		where = fmt.Sprintf(" (%s, pid %d)", l.Host, l.PID)
	case l.Host != "":
		where = fmt.Sprintf(" (%s)", l.Host)
	case l.PID > 0:
		where = fmt.Sprintf(" (pid %d)", l.PID)
	}
	what := l.State
	switch l.State {
	case Running:
		what = "runs but has not called it"
	case Stopped, Gone:
		what = "is " + l.State
	case NoAnswer:
		what = "does not answer"
	}
	if l.What != "" {
		what += " [" + l.What + "]"
	}
	return fmt.Sprintf("rank %d%s %s, last at #%d", l.Rank, where, what, l.Seq)
}
