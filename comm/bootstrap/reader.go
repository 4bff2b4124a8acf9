package bootstrap

import (
	"fmt"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/wire"
)

// reader is the goroutine that reads from the hub until the connection ends.
func (s *Session) reader() {
	defer s.link.close()
	defer s.out.finish()
	for {
		m, err := s.link.read(wire.MaxDown)
		if err != nil {
			s.rootLost(s.link.why(err))
			return
		}
		switch m := m.(type) {
		case wire.All:
			s.deliverVerdict(m.Seq, verdict{parts: m.Parts})
		case wire.End:
			s.deliverVerdict(m.Seq, verdict{end: &m})
		case wire.Relay:
			if err := s.deliverMessage(m); err != nil {
				s.rootLost(err.Error())
				return
			}
		case wire.Query:
			select {
			case s.asked <- m:
			default: // the Status callback hangs: this rank counts as one that does not answer
			}
		case wire.Status:
			s.deliverStatus(m)
		case wire.Event:
			s.onEvent(m)
		}
	}
}

// answerer calls Status on a goroutine of its own, so that a callback that hangs
// stops neither the reader nor anything that depends on it.
func (s *Session) answerer() {
	for {
		select {
		case q := <-s.asked:
			m := wire.Status{Rank: q.Rank, Token: q.Token, Data: s.status()}
			if q.Rank == s.cfg.Rank {
				s.deliverStatus(m)
			} else {
				s.out.push(wire.Append(nil, m))
			}
		case <-s.ended:
			return
		}
	}
}

func (s *Session) status() []byte {
	if s.cfg.Status == nil {
		return nil
	}
	b := s.cfg.Status()
	return b[:min(len(b), wire.MaxData)]
}

// onEvent records a departure, tells the user, and only then ends what waits for
// that rank: so the user knows the cause before any call returns because of it.
func (s *Session) onEvent(m wire.Event) {
	if m.Rank < 0 || m.Rank >= len(s.peers) {
		return
	}
	p := s.peers[m.Rank]
	s.mu.Lock()
	_, known := s.gone[m.Rank]
	if !known {
		s.gone[m.Rank] = m
	}
	// The end of the root is news even after rank 0's own departure, but once.
	rootEnds := m.What == wire.EventLost && m.Rank == 0 && !s.rootGone
	s.rootGone = s.rootGone || rootEnds
	s.mu.Unlock()
	if known && !rootEnds {
		return
	}
	if s.cfg.OnEvent != nil {
		s.cfg.OnEvent(Event{Kind: EventKind(m.What), Rank: m.Rank, Text: m.Text, Host: p.Host, PID: p.PID})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failBoxes(func(k boxKey) bool { return k.peer == m.Rank }, func() error { return s.goneError(m) })
	s.settleQueries()
}

// goneError says why nothing can be expected of a rank. It is made only when
// somebody waits for that rank: at the end of a world n ranks hear of n departures.
func (s *Session) goneError(m wire.Event) error {
	p := s.peers[m.Rank]
	kind, what := goccl.ErrPeerLost, "was lost"
	switch m.What {
	case wire.EventFailed:
		kind, what = goccl.ErrAborted, "failed"
	case wire.EventLeft:
		kind, what = goccl.ErrClosed, "has left"
	}
	text := fmt.Sprintf("rank %d %s", m.Rank, what)
	if m.Text != "" {
		text += ": " + m.Text
	}
	e := goccl.NewError("session", fmt.Errorf("%w: %s", kind, text))
	e.Peer, e.PeerAddr = m.Rank, who(p.Host, p.PID)
	return e
}

// rootLost ends the session because the hub cannot be heard any more.
func (s *Session) rootLost(why string) {
	s.mu.Lock()
	bye := s.bye
	s.mu.Unlock()
	if bye {
		s.finish(s.closedError())
		return
	}
	// How and where a connection ends differs between ranks; the event must not.
	s.cfg.Logger.Info("connection to the root lost", "rank", s.cfg.Rank, "root", s.link.address(), "why", why)
	m := wire.Event{What: wire.EventLost, Rank: 0, Text: "the connection to the root in its process ended"}
	s.onEvent(m)
	s.finish(s.goneError(m))
}
