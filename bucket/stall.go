package bucket

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// stallWatch reports once per Finish when it takes longer than a limit. Its
// timer is made once and rearmed, so that a step allocates nothing for it.
type stallWatch struct {
	after  time.Duration
	report func(b int)
	bucket atomic.Int64

	mu    sync.Mutex // held while report runs: disarm waits for it
	armed bool
	timer *time.Timer
}

// newStallWatch returns a watch that is not armed; with after < 0 it never is.
func newStallWatch(after time.Duration, report func(b int)) *stallWatch {
	return &stallWatch{after: after, report: report}
}

func (s *stallWatch) arm() {
	if s.after < 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = true
	if s.timer == nil {
		s.timer = time.AfterFunc(s.after, s.fire)
		return
	}
	s.timer.Reset(s.after)
}

// watch says which bucket is waited for.
func (s *stallWatch) watch(b int) { s.bucket.Store(int64(b)) }

// disarm ends the watch of this Finish; a report that is running ends first.
func (s *stallWatch) disarm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = false
	if s.timer != nil {
		s.timer.Stop()
	}
}

func (s *stallWatch) close() { s.disarm() }

// fire runs on the timer's goroutine. One that was late, after disarm, finds the
// watch not armed; one that finds it armed anew reports early by at most one
// step, which a limit of many steps does not mind.
func (s *stallWatch) fire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.armed {
		s.report(int(s.bucket.Load()))
	}
}

// reportStall warns that Finish waits for bucket b.
func (r *Reducer) reportStall(b int) {
	if r.cfg.Logger == nil {
		return
	}
	r.cfg.Logger.Warn("bucket: Finish is waiting; another rank has not announced these gradients, or has not reached this step",
		slog.String("group", r.g.Name()), slog.Int("rank", r.g.Rank()), slog.Duration("waited", r.cfg.StallAfter),
		slog.String("bucket", r.buckets[b].text), slog.Any("waits_for", r.g.Health().Waiting))
}
