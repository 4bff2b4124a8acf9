package bootstrap

import (
	"fmt"
	"strconv"
	"time"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/wire"
)

// hub is the state of the root as a machine without I/O: each input method takes
// one thing that happened and leaves effects for the caller to carry out, in
// order. It has no clock and no goroutines, so scripts can test it line by line.
// It is not safe for concurrent use; the goroutine in Serve owns it.
type hub struct {
	size   int
	linger time.Duration // how long the others may go on after rank 0; 0: without end

	phase   phase
	members []*member       // by rank; nil: has not said hello
	conns   map[int]*member // by connection, those that are open
	gone    []*member       // in the order in which they failed, left or were lost
	open    map[uint64]*gather
	verdict *wire.Refuse // after a failed join: what every newcomer is told
	told    map[int]bool // ranks that have heard verdict
	out     []effect
	done    bool
	err     error
}

// phase is the stage of the world's life.
type phase uint8

const (
	joining phase = iota
	running
	refused // the world could not be completed; latecomers are told why
)

// member is a rank that has said hello.
type member struct {
	rank  int
	conn  int
	pid   int
	host  string
	addr  string
	info  []byte
	puts  uint64 // collectives it has entered
	state state
	cause string // why it is gone, as a sentence that names it
}

type state uint8

const (
	live state = iota
	failed
	left
	lost
)

// effect is one thing for the caller to do.
type effect struct {
	to     []int         // connections that get msg
	msg    wire.Message  // nil: none
	hangup bool          // then end these connections once all is written
	timer  time.Duration // positive: call elapsed after so long, replacing an earlier timer
}

// refuseLinger is how long a root whose world failed to form tells latecomers the
// reason: ranks start within seconds of each other, and one that finds nobody would
// retry until its own deadline.
const refuseLinger = 5 * time.Second

func newHub(size int, linger time.Duration) *hub {
	return &hub{size: size, linger: linger, members: make([]*member, size), conns: map[int]*member{},
		open: map[uint64]*gather{}, told: map[int]bool{}}
}

// take returns the effects since the last call.
func (h *hub) take() []effect {
	out := h.out
	h.out = nil
	return out
}

func (h *hub) send(m wire.Message, to ...int) {
	if len(to) > 0 {
		h.out = append(h.out, effect{to: to, msg: m})
	}
}

func (h *hub) hangup(conn int) {
	delete(h.conns, conn)
	h.out = append(h.out, effect{to: []int{conn}, hangup: true})
}

// everyone returns the open connections in rank order.
func (h *hub) everyone() []int {
	var to []int
	for _, m := range h.members {
		if m != nil && h.conns[m.conn] == m {
			to = append(to, m.conn)
		}
	}
	return to
}

// receive is an input: a message of a connection whose hello was accepted.
func (h *hub) receive(conn int, msg wire.Message) {
	m := h.conns[conn]
	if m == nil {
		return // crossed with our hanging up
	}
	switch msg := msg.(type) {
	case wire.Ping:
		return
	case wire.Bye:
		h.depart(m, left, "")
		return
	case wire.Fail:
		h.depart(m, failed, msg.Text)
		return
	case wire.Expire:
		h.expire(m, msg.Seq)
		return
	}
	if h.phase != running {
		h.drop(conn, fmt.Sprintf("it sent %v before all ranks had joined", msg.Kind()))
		return
	}
	switch msg := msg.(type) {
	case wire.Put:
		h.put(m, msg)
	case wire.Relay:
		h.forward(m, msg.Rank, wire.Relay{Rank: m.rank, Tag: msg.Tag, Data: msg.Data})
	case wire.Status:
		h.forward(m, msg.Rank, wire.Status{Rank: m.rank, Token: msg.Token, Data: msg.Data})
	case wire.Query:
		for _, p := range h.members {
			if p != m && h.conns[p.conn] == p {
				h.send(wire.Query{Rank: m.rank, Token: msg.Token}, p.conn)
			}
		}
	default:
		h.drop(conn, fmt.Sprintf("it sent %v, which only the root may", msg.Kind()))
	}
}

// forward passes a message on. A receiver that is gone gets nothing: the sender has
// the event that says so, or will.
func (h *hub) forward(from *member, to int, msg wire.Message) {
	if to < 0 || to >= h.size {
		h.drop(from.conn, fmt.Sprintf("it addressed rank %d in a world of %d", to, h.size))
		return
	}
	if p := h.members[to]; h.conns[p.conn] == p {
		h.send(msg, p.conn)
	}
}

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
