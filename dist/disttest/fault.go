package disttest

import (
	"time"

	"github.com/goccl/goccl/comm/transport"
	"github.com/goccl/goccl/comm/transport/faulty"
	"github.com/goccl/goccl/dist"
	processgroup "github.com/goccl/goccl/process_group"
)

// Fault is something that goes wrong, or slowly, on a plan. Operations count from
// 1 on each rank, in the group of all ranks.
type Fault struct {
	at   *event
	wire *faulty.Fault
	link *faulty.Link
}

// event is what happens at one operation of one rank.
type event struct {
	rank, op int
	err      error         // it fails with this
	delay    time.Duration // it begins so much later
	panics   bool
}

// FailAt makes the op-th operation of a rank fail with err, as a transport or a
// device may fail: the group fails on all ranks.
func FailAt(rank, op int, err error) Fault { return Fault{at: &event{rank: rank, op: op, err: err}} }

// PanicAt makes the rank panic when it waits for its op-th operation.
func PanicAt(rank, op int) Fault { return Fault{at: &event{rank: rank, op: op, panics: true}} }

// DelayAt makes the rank late by d at its op-th operation.
func DelayAt(rank, op int, d time.Duration) Fault {
	return Fault{at: &event{rank: rank, op: op, delay: d}}
}

// OnLink puts a link of this speed between each pair of ranks.
func OnLink(l faulty.Link) Fault { return Fault{link: &l} }

// OnWire plans f for the connections from one rank to another; -1 is any rank. The
// steps of a connection are those of package faulty. f.On is replaced.
func OnWire(from, to int, f faulty.Fault) Fault {
	f.On = func(c transport.Conn) bool { return (from < 0 || c.Src == from) && (to < 0 || c.Dst == to) }
	return Fault{wire: &f}
}

// plan is all that is to happen.
type plan []Fault

// config is a job in which it does.
func (p plan) config() dist.Config {
	var events []*event
	var wires faulty.Config
	shaped := false
	for _, f := range p {
		switch {
		case f.at != nil:
			events = append(events, f.at)
		case f.wire != nil:
			wires.Faults = append(wires.Faults, *f.wire)
			shaped = true
		case f.link != nil:
			wires.Link = *f.link
			shaped = true
		}
	}
	cfg := dist.Config{Timeout: patience}
	if shaped {
		cfg.Transport.Decorate = func(ts []transport.Transport) []transport.Transport {
			for i, t := range ts {
				ts[i] = faulty.New(t, wires)
			}
			return ts
		}
	}
	if len(events) > 0 {
		cfg.Wrap = func(group string, rank int, b processgroup.Backend) processgroup.Backend {
			if group != "world" {
				return b
			}
			return newBackend(b, rank, events)
		}
	}
	return cfg
}
