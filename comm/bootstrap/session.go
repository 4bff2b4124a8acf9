package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/wire"
)

// Session is a rank's membership in the world: one connection to the hub, from
// Join to Close. All methods are safe for concurrent use; collectives must be
// called in one order on all ranks. A context without a deadline is bounded by
// Config.Timeout.
type Session struct {
	cfg   Config
	link  *link   // nil in a world of one
	out   *outbox // nil in a world of one
	peers []Peer

	mu       sync.Mutex
	seq      uint64                  // collectives entered
	gathers  map[uint64]chan verdict // waiting for the hub
	mail     mail                    // relayed messages
	queries  map[uint64]*query       // by token
	token    uint64                  // last query
	gone     map[int]wire.Event      // why a rank cannot be waited for
	rootGone bool                    // its end has been reported
	end      error                   // why the session is over
	bye      bool                    // Close was called

	asked  chan wire.Query // for the goroutine that calls Status
	ended  chan struct{}   // closed with end
	wg     sync.WaitGroup  // reader and writer
	answer sync.WaitGroup  // the goroutine that calls Status
	once   sync.Once
}

func newSession(cfg Config, l *link, accept wire.Accept) *Session {
	s := &Session{cfg: cfg, link: l, gathers: map[uint64]chan verdict{}, mail: mail{boxes: map[boxKey]*box{}}, queries: map[uint64]*query{},
		gone: map[int]wire.Event{}, asked: make(chan wire.Query, 64), ended: make(chan struct{})}
	if l != nil {
		beat := time.Duration(accept.HeartbeatMillis) * time.Millisecond
		l.setIdle(lossAfter * beat)
		s.out = newOutbox(l, outboxLimit)
		s.wg.Go(func() { s.out.run(beat) })
	}
	return s
}

// soloSession is a world of one: nothing leaves the process.
func soloSession(cfg Config) *Session {
	s := newSession(cfg, nil, wire.Accept{})
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	s.peers = []Peer{{Rank: 0, Host: host, PID: os.Getpid(), Addr: "in process", Info: cfg.Info}}
	return s
}

// awaitRoster waits until all ranks have joined. When ctx ends it tells the root,
// which answers with the missing ranks, to everybody.
func (s *Session) awaitRoster(ctx context.Context) (wire.Roster, error) {
	told := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(told)
		s.out.push(wire.Append(nil, wire.Expire{}))
		s.link.setHard(time.Now().Add(verdictGrace))
	})
	defer stop()
	for {
		m, err := s.link.read(wire.MaxDown)
		if err != nil && ctx.Err() != nil {
			return wire.Roster{}, fmt.Errorf("%w: waiting for the other ranks, and the root at %s does not say which are missing: %s", goccl.ErrTimeout, s.link.address(), ended(ctx))
		}
		if err != nil {
			return wire.Roster{}, &attemptError{addr: s.link.address(), step: "wait for the other ranks", err: readable(s.link, err)}
		}
		switch m := m.(type) {
		case wire.Refuse:
			return wire.Roster{}, &refusedError{m}
		case wire.Roster:
			if len(m.Members) != s.cfg.Size {
				return wire.Roster{}, fmt.Errorf("%w: the root's list has %d ranks, not %d", goccl.ErrMismatch, len(m.Members), s.cfg.Size)
			}
			if !stop() { // all came just in time
				<-told
				s.link.setHard(time.Time{})
			}
			return m, nil
		}
	}
}

// begin starts the goroutines of a joined session.
func (s *Session) begin(roster wire.Roster) {
	s.peers = make([]Peer, len(roster.Members))
	for i, m := range roster.Members {
		s.peers[i] = Peer{Rank: i, Host: m.Host, PID: m.PID, Addr: m.Addr, Info: m.Info}
	}
	s.wg.Go(s.reader)
	s.answer.Go(s.answerer)
}

// abandon ends a session that never began.
func (s *Session) abandon() {
	s.link.close()
	s.out.finish()
	s.wg.Wait()
}

// Peers returns all ranks, in rank order, as exchanged by Join. The slice is
// shared: read only.
func (s *Session) Peers() []Peer { return s.peers }

// Rank returns this rank.
func (s *Session) Rank() int { return s.cfg.Rank }

// Size returns the world size.
func (s *Session) Size() int { return s.cfg.Size }

// Fail tells every rank, this one included, that this one gives up, and why:
// OnEvent gets Event{Failed} everywhere, unless this rank is gone already. It
// does not block; Close makes sure that the text is on its way. text may have 8 KiB.
func (s *Session) Fail(text string) {
	if s.link != nil {
		s.out.push(wire.Append(nil, wire.Fail{Text: text}))
		return
	}
	s.onEvent(wire.Event{What: wire.EventFailed, Rank: 0, Text: text})
}

// goodbyeTime bounds the wait for the root to answer a goodbye. It is generous: a
// root that serves hundreds of departures at once is slow, not dead.
const goodbyeTime = 5 * time.Second

// Close says goodbye and ends the session: the others see Event{Left}. What was
// queued is sent first. Operations still waiting end with goccl.ErrClosed. It is
// idempotent, and bounded to a few seconds even when the root does not answer.
func (s *Session) Close() error {
	s.once.Do(s.close)
	return nil
}

func (s *Session) close() {
	s.mu.Lock()
	s.bye = true
	s.mu.Unlock()
	if s.link == nil {
		s.finish(s.closedError())
		return
	}
	s.out.push(wire.Append(nil, wire.Bye{}))
	// The root answers a goodbye by hanging up, which ends the reader.
	timer := time.NewTimer(goodbyeTime)
	defer timer.Stop()
	select {
	case <-s.ended:
	case <-timer.C:
	}
	s.finish(s.closedError())
	s.out.finish()
	s.link.close()
	s.wg.Wait()
	answered := make(chan struct{})
	go func() { s.answer.Wait(); close(answered) }()
	timer.Reset(flushTime)
	select {
	case <-answered:
	case <-timer.C: // the user's Status callback hangs; its goroutine ends with it
	}
}

func (s *Session) closedError() error {
	e := goccl.NewError("session", fmt.Errorf("%w: this rank has closed its session", goccl.ErrClosed))
	e.Rank = s.cfg.Rank
	return e
}

// finish ends the session for the first reason given and wakes every waiter.
func (s *Session) finish(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != nil {
		return
	}
	s.end = err
	for _, ch := range s.gathers {
		ch <- verdict{err: err}
	}
	clear(s.gathers)
	s.failBoxes(func(boxKey) bool { return true }, func() error { return err })
	s.settleQueries()
	close(s.ended)
}

// bound gives ctx the default deadline if it has none.
func (s *Session) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, s.cfg.Timeout)
}

// waitError is the error of a wait that ctx ended.
func (s *Session) waitError(ctx context.Context, op string, peer int) error {
	kind := goccl.ErrAborted
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		kind = goccl.ErrTimeout
	}
	e := goccl.NewError(op, fmt.Errorf("%w: %w", kind, context.Cause(ctx)))
	e.Rank, e.Peer = s.cfg.Rank, peer
	if peer >= 0 && peer < len(s.peers) {
		e.PeerAddr = who(s.peers[peer].Host, s.peers[peer].PID)
	}
	return e
}
