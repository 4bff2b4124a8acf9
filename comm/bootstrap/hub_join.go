package bootstrap

import (
	"fmt"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/wire"
)

// hello is an input: a new connection has proved that it knows the secret and asks
// to join. accept is the answer to send if it may.
func (h *hub) hello(conn int, m wire.Hello, addr string, accept wire.Accept) {
	if refusal := h.refusal(m); refusal != nil {
		h.send(*refusal, conn)
		h.hangup(conn)
		h.endIfToldAll()
		return
	}
	p := &member{rank: m.Rank, conn: conn, pid: m.PID, host: m.Host, addr: addr, info: m.Info}
	h.members[m.Rank], h.conns[conn] = p, p
	h.send(accept, conn)
	if m.Failure != "" {
		h.depart(p, failed, m.Failure)
		return
	}
	if len(h.absent()) > 0 {
		return
	}
	h.phase = running
	roster := wire.Roster{Members: make([]wire.Member, h.size)}
	for i, p := range h.members {
		roster.Members[i] = wire.Member{PID: p.pid, Host: p.host, Addr: p.addr, Info: p.info}
	}
	h.send(roster, h.everyone()...)
}

// refusal says why this hello cannot be taken, or nil.
func (h *hub) refusal(m wire.Hello) *wire.Refuse {
	refuse := func(c wire.Code, format string, args ...any) *wire.Refuse {
		return &wire.Refuse{Code: c, Rank: m.Rank, Text: fmt.Sprintf(format, args...)}
	}
	from := who(m.Host, m.PID)
	switch {
	case m.Size != h.size:
		return refuse(wire.CodeSize, "rank %d (%s) says the world size is %d, the root says %d: start all ranks with one world size", m.Rank, from, m.Size, h.size)
	case m.Rank < 0 || m.Rank >= h.size:
		return refuse(wire.CodeRange, "rank %d not below world %d (%s): ranks are 0 to %d", m.Rank, h.size, from, h.size-1)
	case h.phase == refused:
		h.told[m.Rank] = true
		return h.verdict
	}
	p := h.members[m.Rank]
	switch {
	case p == nil:
		return nil
	case p.state == live || p.state == failed && h.conns[p.conn] == p:
		return refuse(wire.CodeDuplicate, "rank %d is taken: it joined from %s (%s) and now comes from %s: give every process its own rank", m.Rank, p.who(), p.addr, from)
	}
	return refuse(wire.CodeDuplicate, "%s; it cannot join again (now from %s): make a new unique id", p.cause, from)
}

// joinTimeout is an input: the time for joining is over.
func (h *hub) joinTimeout(why string) {
	if h.phase == joining {
		h.refuseAll(h.timeoutVerdict(why))
	}
}

func (h *hub) timeoutVerdict(why string) wire.Refuse {
	return wire.Refuse{Code: wire.CodeTimeout, Rank: -1, Missing: h.absent(), Text: fmt.Sprintf("%d of %d ranks joined: %s", h.joined(), h.size, why)}
}

// refuseAll ends the joining for every rank, those here and those to come.
func (h *hub) refuseAll(v wire.Refuse) {
	h.phase = refused
	h.verdict = &v
	h.err = verdictError("serve", v.Code, v.Rank, v.Missing, v.Text)
	to := h.everyone()
	for _, r := range h.connected() {
		h.told[r] = true
	}
	if v.Code != wire.CodeTimeout && v.Rank >= 0 {
		h.told[v.Rank] = true // the guilty rank knows, or is dead
	}
	h.send(v, to...)
	for _, c := range to {
		h.hangup(c)
	}
	h.out = append(h.out, effect{timer: h.late})
	h.endIfToldAll()
}

// endIfToldAll ends the root of a failed world early when every rank has heard why.
func (h *hub) endIfToldAll() {
	if h.phase == refused && len(h.told) == h.size {
		h.done = true
	}
}

// absent returns the ranks that have not said hello.
func (h *hub) absent() []int {
	var rs []int
	for r, m := range h.members {
		if m == nil {
			rs = append(rs, r)
		}
	}
	return rs
}

func (h *hub) joined() int { return h.size - len(h.absent()) }

func (m *member) joinSentence(joined, size int, why string) string {
	switch m.state {
	case failed:
		return m.sentence(why)
	case left:
		return fmt.Sprintf("rank %d (%s) left while joining, %d of %d ranks had joined", m.rank, m.who(), joined, size)
	}
	return fmt.Sprintf("rank %d (%s, %s) was lost while joining, %d of %d ranks had joined: %s", m.rank, m.who(), m.addr, joined, size, why)
}

// sentinels maps the reasons on the wire to the errors of package goccl.
var sentinels = [...]error{
	wire.CodeVersion:   goccl.ErrMismatch,
	wire.CodeJob:       goccl.ErrMismatch,
	wire.CodeSecret:    goccl.ErrMismatch,
	wire.CodeRange:     goccl.ErrInvalid,
	wire.CodeSize:      goccl.ErrMismatch,
	wire.CodeDuplicate: goccl.ErrInvalid,
	wire.CodeTimeout:   goccl.ErrTimeout,
	wire.CodeFailed:    goccl.ErrAborted,
	wire.CodeLost:      goccl.ErrPeerLost,
	wire.CodeLeft:      goccl.ErrClosed,
	wire.CodeMismatch:  goccl.ErrMismatch,
	wire.CodeTooLarge:  goccl.ErrInvalid,
	wire.CodeClosed:    goccl.ErrClosed,
	wire.CodeMalformed: goccl.ErrMismatch,
}

// verdictError makes the error for something that the root decided. It leaves out
// the reporting rank, so that it is the same line on all of them.
func verdictError(op string, code wire.Code, rank int, missing []int, text string) error {
	e := goccl.NewError(op, fmt.Errorf("%w: %s", sentinels[code], text))
	e.Peer = rank
	e.Missing = missing
	return e
}
