package bootstrap

import (
	"fmt"
	"strconv"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/wire"
)

// drop is an input: a connection ended without a goodbye, or has to be ended.
func (h *hub) drop(conn int, why string) {
	if m := h.conns[conn]; m != nil {
		h.depart(m, lost, why)
	}
}

// depart is where a rank stops counting. The first departure of a rank is the one
// that everybody hears of; what follows from it is noise.
func (h *hub) depart(m *member, to state, why string) {
	if to != failed {
		h.hangup(m.conn)
	}
	if m.state == live {
		m.state = to
		m.cause = m.sentence(why)
		if h.phase == joining {
			h.refuseAll(wire.Refuse{Code: m.code(), Rank: m.rank, Text: m.joinSentence(h.joined(), h.size, why)})
		}
		if h.phase == running {
			h.gone = append(h.gone, m)
			h.send(wire.Event{What: m.event(), Rank: m.rank, Text: why}, h.everyone()...)
			h.endWaiting()
		}
	}
	h.pruneAll()
	h.wane(m)
}

// wane ends the root when nobody is left, and starts the clock for the others when
// rank 0, whose process it lives in, is gone.
func (h *hub) wane(m *member) {
	switch {
	case h.phase != running:
	case len(h.conns) == 0:
		h.done = true
	case m.rank == 0 && h.conns[m.conn] != m && h.linger > 0:
		h.out = append(h.out, effect{timer: h.linger})
	}
}

// elapsed is an input: the timer asked for by an effect has run out.
func (h *hub) elapsed() {
	if h.phase == running {
		e := goccl.NewError("serve", fmt.Errorf("%w: rank 0 is gone and %s did not leave within %v", goccl.ErrTimeout, goccl.Ranks(h.connected()), h.linger))
		h.shut(e)
		return
	}
	h.done = true
}

// shut is an input: the root ends now, whoever is still there.
func (h *hub) shut(why error) {
	if h.done {
		return
	}
	if h.phase == joining {
		h.refuseAll(wire.Refuse{Code: wire.CodeClosed, Rank: -1, Missing: h.absent(), Text: "the root was closed while ranks were joining"})
	}
	if h.phase == running {
		h.err = why
		h.send(wire.Event{What: wire.EventLost, Rank: 0, Text: "the root ended"}, h.everyone()...)
		for _, c := range h.everyone() {
			h.hangup(c)
		}
	}
	h.done = true
}

// connected returns the ranks with an open connection.
func (h *hub) connected() []int {
	var rs []int
	for _, m := range h.members {
		if m != nil && h.conns[m.conn] == m {
			rs = append(rs, m.rank)
		}
	}
	return rs
}

// who names the process behind a rank.
func (m *member) who() string { return who(m.host, m.pid) }

func who(host string, pid int) string { return "host " + host + ", pid " + strconv.Itoa(pid) }

func (m *member) sentence(why string) string {
	switch m.state {
	case failed:
		return fmt.Sprintf("rank %d (%s) failed: %s", m.rank, m.who(), why)
	case left:
		return fmt.Sprintf("rank %d (%s) has left", m.rank, m.who())
	}
	return fmt.Sprintf("rank %d (%s, %s) was lost: %s", m.rank, m.who(), m.addr, why)
}

func (m *member) code() wire.Code {
	return [...]wire.Code{failed: wire.CodeFailed, left: wire.CodeLeft, lost: wire.CodeLost}[m.state]
}

func (m *member) event() wire.EventKind {
	return [...]wire.EventKind{failed: wire.EventFailed, left: wire.EventLeft, lost: wire.EventLost}[m.state]
}
