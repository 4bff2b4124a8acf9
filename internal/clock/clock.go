// Package clock reads the time cheaply: a time stamp twice in every operation
// would otherwise cost a tenth of a small one. Where the processor's counter runs
// at a constant rate it is read directly (about 8 ns instead of 30) and scaled by
// a rate that is measured against the system's monotonic clock; elsewhere the
// system's clock is read.
package clock

import (
	"math/bits"
	"sync/atomic"
	"time"
)

var (
	start      = time.Now()
	startTicks = ticks()
	// scale is nanoseconds per tick as a 32.32 fixed-point number; 0: not measured,
	// or no counter.
	scale atomic.Uint64
)

// settle is how long the counter must have run before its rate is known well: the
// error of reading both clocks, about 100 ns, is then 5 parts per million.
const settle = 20 * time.Millisecond

// Now returns nanoseconds since the start of the process. It may be wrong by a few
// parts per million of that, and never goes back but by the like of it.
func Now() int64 {
	s := scale.Load()
	if s == 0 {
		return measure()
	}
	hi, lo := bits.Mul64(ticks()-startTicks, s)
	return int64(hi<<32 | lo>>32)
}

// Discipline measures the rate again over the whole life of the process. Someone
// who ticks anyway calls it from time to time.
func Discipline() { measure() }

// Wall returns the wall-clock time of a stamp.
func Wall(ns int64) time.Time { return start.Add(time.Duration(ns)) }

func measure() int64 {
	since, t := time.Since(start), ticks()-startTicks
	if t > 0 && since >= settle && counter {
		// since << 32 / t, in 128 bits: the quotient fits because a tick is shorter
		// than 2^32 ns.
		hi, lo := uint64(since)>>32, uint64(since)<<32
		if hi < t {
			q, _ := bits.Div64(hi, lo, t)
			scale.Store(q)
		}
	}
	return int64(since)
}
