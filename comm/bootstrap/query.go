package bootstrap

import (
	"context"
	"maps"

	"github.com/goccl/goccl/comm/wire"
)

// query is a Query under way.
type query struct {
	answers map[int][]byte
	done    chan struct{} // closed when nobody is left to wait for
	closed  bool
}

// Query asks every rank for its Status and returns the answers by rank. Sessions
// answer by themselves, also when their rank's own code is stuck. It blocks until
// all ranks that are not gone have answered or ctx ends; ranks that do not answer,
// because their process is stopped or their callback hangs, are absent.
func (s *Session) Query(ctx context.Context) map[int][]byte {
	ctx, cancel := s.bound(ctx)
	defer cancel()
	q := &query{answers: map[int][]byte{}, done: make(chan struct{})}
	s.mu.Lock()
	s.token++
	token := s.token
	s.queries[token] = q
	s.mu.Unlock()
	if s.link == nil {
		s.deliverStatus(wire.Status{Rank: 0, Token: token, Data: s.status()})
	} else {
		s.out.push(wire.Append(nil, wire.Query{Rank: -1, Token: token}))
		// This rank answers like the others: on the goroutine that may hang.
		select {
		case s.asked <- wire.Query{Rank: s.cfg.Rank, Token: token}:
		default:
		}
	}
	s.mu.Lock()
	s.settleQueries()
	s.mu.Unlock()
	select {
	case <-q.done:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.queries, token)
	return maps.Clone(q.answers)
}

func (s *Session) deliverStatus(m wire.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.queries[m.Token]; q != nil && m.Rank >= 0 && m.Rank < s.cfg.Size {
		q.answers[m.Rank] = m.Data
	}
	s.settleQueries()
}

// settleQueries ends the queries that wait for nobody any more. A rank that failed
// still runs, but one that answers late must not hold up the rest. mu is held.
func (s *Session) settleQueries() {
	for _, q := range s.queries {
		if q.closed {
			continue
		}
		waiting := false
		for r := range s.cfg.Size {
			_, answered := q.answers[r]
			_, gone := s.gone[r]
			if !answered && !gone && s.end == nil {
				waiting = true
				break
			}
		}
		if !waiting {
			q.closed = true
			close(q.done)
		}
	}
}
