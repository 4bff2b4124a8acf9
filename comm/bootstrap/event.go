package bootstrap

import "github.com/goccl/goccl/comm/wire"

// EventKind says what happened to a rank.
type EventKind uint8

// The events.
const (
	Lost   = EventKind(wire.EventLost)   // its process or connection is gone without a goodbye
	Failed = EventKind(wire.EventFailed) // it called Fail
	Left   = EventKind(wire.EventLeft)   // it closed its session normally
)

// String returns the lower-case name, for example "lost".
func (k EventKind) String() string { return wire.EventKind(k).String() }

// Event is one rank's departure. There is at most one for each rank, the first
// cause, except that Event{Lost, 0} also reports the end of the root itself.
type Event struct {
	Kind EventKind
	Rank int
	Text string // the failure text, or how the loss showed; empty for Left
	Host string // where the rank ran
	PID  int
}

// Peer is a rank as all ranks see it.
type Peer struct {
	Rank int
	Host string // host name
	PID  int
	Addr string // host:port of its connection as the root sees it, or "in process"
	Info []byte // its Config.Info; read only
}
