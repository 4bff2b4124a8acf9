package faulty

import (
	"fmt"
	"time"

	"github.com/goccl/goccl/comm/transport"
)

// Kind is what goes wrong.
type Kind int

// The kinds of fault. A step is a slot of the connection's FIFO, from 0.
const (
	Delay   Kind = iota // every step from Step on arrives For later
	Cut                 // the connection breaks before Step
	Corrupt             // one byte of Step is changed
	Stall               // Step and all after it never arrive, and nothing breaks
)

// String returns "delay", "cut", "corrupt" or "stall".
func (k Kind) String() string {
	switch k {
	case Delay:
		return "delay"
	case Cut:
		return "cut"
	case Corrupt:
		return "corrupt"
	case Stall:
		return "stall"
	}
	return fmt.Sprintf("fault(%d)", int(k))
}

// Fault is one planned fault.
type Fault struct {
	Kind Kind
	On   func(transport.Conn) bool // the connections it concerns; nil: all
	Step uint64
	For  time.Duration // Delay only
	Byte int           // Corrupt only: which byte, modulo the payload's length
}

// plan is what is to happen on one connection.
type plan struct {
	faults []Fault
}

func planFor(faults []Fault, c transport.Conn) plan {
	var p plan
	for _, f := range faults {
		if f.On == nil || f.On(c) {
			p.faults = append(p.faults, f)
		}
	}
	return p
}

// ends returns the fault by which the connection ends at the step, if any.
func (p plan) ends(step uint64) (Kind, bool) {
	for _, f := range p.faults {
		if (f.Kind == Cut || f.Kind == Stall) && step >= f.Step {
			return f.Kind, true
		}
	}
	return 0, false
}

// delay returns how much later the step arrives.
func (p plan) delay(step uint64) (d time.Duration) {
	for _, f := range p.faults {
		if f.Kind == Delay && step >= f.Step {
			d += f.For
		}
	}
	return d
}

// corrupt changes the payload of the step as planned.
func (p plan) corrupt(step uint64, payload []byte) {
	for _, f := range p.faults {
		if f.Kind == Corrupt && step == f.Step && len(payload) > 0 {
			payload[f.Byte%len(payload)] ^= 0x55
		}
	}
}
