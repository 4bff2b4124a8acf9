package bootstrap

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/wire"
)

// verdict is how a collective ended: with parts, with the hub's reason, or with the
// session.
type verdict struct {
	parts [][]byte
	end   *wire.End
	err   error
}

// AllGather exchanges local, at most 1 MiB, between all ranks and returns the
// parts in rank order; they belong to the caller. It blocks until every rank has
// called it. When any rank's ctx ends first, it ends for all with one error that
// names the missing ranks; it also ends when a rank that is needed is gone. All
// parts together may have 64 MiB.
func (s *Session) AllGather(ctx context.Context, local []byte) ([][]byte, error) {
	v := s.collect(ctx, wire.OpAllGather, local)
	return v.parts, v.err
}

// Barrier blocks until every rank has called it. It ends early as AllGather does.
func (s *Session) Barrier(ctx context.Context) error {
	return s.collect(ctx, wire.OpBarrier, nil).err
}

// MonitoredBarrier is a Barrier that also returns the ranks that had not arrived
// when it ended, on every rank that had.
func (s *Session) MonitoredBarrier(ctx context.Context) (missing []int, err error) {
	v := s.collect(ctx, wire.OpMonitoredBarrier, nil)
	if v.end != nil {
		missing = v.end.Missing
	}
	return missing, v.err
}

// collect enters the next collective and waits for how it ends.
func (s *Session) collect(ctx context.Context, op wire.Op, local []byte) verdict {
	if len(local) > wire.MaxData {
		return verdict{err: s.refuse(op.String(), fmt.Errorf("%w: %d bytes, at most %d", goccl.ErrInvalid, len(local), wire.MaxData))}
	}
	ctx, cancel := s.bound(ctx)
	defer cancel()
	if s.link == nil {
		return s.collectAlone(op, local)
	}
	seq, ch, err := s.enter(op, local)
	if err != nil {
		return verdict{err: err}
	}
	select {
	case v := <-ch:
		return s.conclude(op, seq, v)
	case <-ctx.Done():
	}
	s.out.push(wire.Append(nil, wire.Expire{Seq: seq}))
	grace := time.NewTimer(verdictGrace)
	defer grace.Stop()
	select {
	case v := <-ch:
		return s.conclude(op, seq, v)
	case <-grace.C:
		s.mu.Lock()
		delete(s.gathers, seq)
		s.mu.Unlock()
		err := s.waitError(ctx, op.String(), 0)
		e := err.(*goccl.Error)
		e.Seq, e.Hint = seq, "the root did not say which ranks are missing"
		return verdict{err: e}
	}
}

// enter takes the next sequence number and queues the part in one step, so that
// concurrent calls reach the hub in the order of their numbers.
func (s *Session) enter(op wire.Op, local []byte) (uint64, chan verdict, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != nil {
		return 0, nil, s.end
	}
	if !s.out.push(wire.Append(nil, wire.Put{Seq: s.seq + 1, Op: op, Data: local})) {
		return 0, nil, s.refuse(op.String(), fmt.Errorf("%w: the root at %s does not read: %d MiB wait for it", goccl.ErrPeerLost, s.link.address(), outboxLimit>>20))
	}
	s.seq++
	ch := make(chan verdict, 1)
	s.gathers[s.seq] = ch
	return s.seq, ch, nil
}

func (s *Session) collectAlone(op wire.Op, local []byte) verdict {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != nil {
		return verdict{err: s.end}
	}
	s.seq++
	if op != wire.OpAllGather {
		return verdict{}
	}
	return verdict{parts: [][]byte{bytes.Clone(local)}}
}

// conclude turns what the hub said into the error that all ranks share.
func (s *Session) conclude(op wire.Op, seq uint64, v verdict) verdict {
	if v.end != nil {
		v.err = verdictError(op.String(), v.end.Code, v.end.Rank, v.end.Missing, v.end.Text)
		v.err.(*goccl.Error).Seq = seq
	}
	if v.err == nil && op == wire.OpAllGather && len(v.parts) != s.cfg.Size {
		v = verdict{err: s.refuse(op.String(), fmt.Errorf("%w: the root sent %d parts for %d ranks", goccl.ErrMismatch, len(v.parts), s.cfg.Size))}
	}
	return v
}

func (s *Session) deliverVerdict(seq uint64, v verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ch := s.gathers[seq]; ch != nil {
		delete(s.gathers, seq)
		ch <- v
	}
}

// refuse makes the error of a call that this rank itself does not carry out.
func (s *Session) refuse(op string, err error) error {
	e := goccl.NewError(op, err)
	e.Rank = s.cfg.Rank
	return e
}
