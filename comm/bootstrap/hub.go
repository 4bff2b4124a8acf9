package bootstrap

import (
	"fmt"
	"time"

	"github.com/goccl/goccl/comm/wire"
)

// hub is the state of the root as a machine without I/O: each input method takes
// one thing that happened and leaves effects for the caller to carry out, in
// order. It has no clock and no goroutines, so scripts can test it line by line.
// It is not safe for concurrent use; the goroutine in Serve owns it.
type hub struct {
	size   int
	linger time.Duration // how long the others may go on after rank 0; 0: without end
	late   time.Duration // how long latecomers of a failed join are told why

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
	return &hub{size: size, linger: linger, late: refuseLinger, members: make([]*member, size), conns: map[int]*member{},
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
