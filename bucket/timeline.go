package bucket

import "time"

// timeline holds when things happened in the step under way, since its begin.
type timeline struct {
	origin time.Time // zero: the step has not begun
	bucket []bucketTimes
}

type bucketTimes struct{ ready, launched, done time.Duration }

// begin sets the origin unless it is set.
func (t *timeline) begin(clock func() time.Time) {
	if t.origin.IsZero() {
		t.origin = clock()
	}
}

func (t *timeline) since(clock func() time.Time) time.Duration { return clock().Sub(t.origin) }

// reset forgets the step; it allocates only when the number of buckets grows.
func (t *timeline) reset(buckets int) {
	t.origin = time.Time{}
	if cap(t.bucket) < buckets {
		t.bucket = make([]bucketTimes, buckets)
	}
	t.bucket = t.bucket[:buckets]
	clear(t.bucket)
}
