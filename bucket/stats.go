package bucket

import (
	"slices"
	"time"
)

// Stats says what happened in one step on this rank. Durations count from the
// step's begin: the call to Begin, or else its first Ready.
type Stats struct {
	Step    uint64 // number of the step, from 1; 0: none has ended
	Buckets []BucketStats
	// Blocked is the time this rank waited in Finish. It is not the exposed
	// communication: it also holds the wait for ranks that were late, and what
	// communication takes from computing beside it is not in it. See Exposed.
	Blocked time.Duration
	Total   time.Duration // from the begin to the end of Finish
	Active  int           // ranks that had input; the group's size without Config.Uneven
	Rebuilt bool          // the layout follows an observed order
}

// BucketStats is one bucket of a step.
type BucketStats struct {
	Bytes    int64         // of its gradients, without padding
	Params   int           // how many
	Ready    time.Duration // it and all buckets before it were full
	Launched time.Duration // its operation was queued
	Done     time.Duration // its end was first seen, in Ready or in Finish; 0: it was not seen, see FinishOn
}

// Begin marks the begin of a step for Stats. It is optional: without it a step
// begins with its first Ready.
func (r *Reducer) Begin() { r.e.begin() }

// Stats returns the figures of the last step that ended. It allocates the list.
func (r *Reducer) Stats() Stats {
	r.run.mu.Lock()
	defer r.run.mu.Unlock()
	s := r.run.stats
	s.Buckets = slices.Clone(s.Buckets)
	return s
}

// snapshot stores the figures of the step that has just ended.
func (r *Reducer) snapshot() {
	r.run.mu.Lock()
	defer r.run.mu.Unlock()
	s := &r.run.stats
	s.Step, s.Blocked, s.Rebuilt = r.run.step, r.run.blocked, r.run.rebuilt
	s.Active = r.g.Size()
	if r.active.announced {
		s.Active = int(r.active.count[0])
	}
	s.Buckets = s.Buckets[:0]
	times, total := r.e.timeline()
	s.Total = total
	for b, t := range times {
		k := &r.buckets[b]
		s.Buckets = append(s.Buckets, BucketStats{Bytes: k.bytes, Params: len(k.members), Ready: t.ready, Launched: t.launched, Done: t.done})
	}
}

// Exposed is the communication that computing did not hide: the median over
// pairs of the time of a step minus that of the same step run next to it with
// only the wire left out (Apply with NoComm). with[i] and without[i] are such a
// pair, measured in alternation. It may be negative by noise, and is 0 for no
// pairs.
func Exposed(with, without []time.Duration) time.Duration {
	n := min(len(with), len(without))
	if n == 0 {
		return 0
	}
	diff := make([]time.Duration, n)
	for i := range diff {
		diff[i] = with[i] - without[i]
	}
	slices.Sort(diff)
	if n%2 == 1 {
		return diff[n/2]
	}
	return (diff[n/2-1] + diff[n/2]) / 2
}
