package main

import (
	"time"

	"github.com/goccl/goccl/bucket"
	"github.com/goccl/goccl/examples/ddp/report"
)

// timing is where the time of one step went on this rank.
type timing struct {
	total   time.Duration
	blocked time.Duration // this rank could only wait for communication
	buckets []span        // since the backward pass began; none where the wire was left out
}

// span is when a bucket was full, was started, and was done.
type span struct{ ready, launched, done time.Duration }

// wire is the time in which at least one bucket was under way. Buckets are launched in
// order.
func (t timing) wire() time.Duration {
	var sum, until time.Duration
	for _, b := range t.buckets {
		sum += max(0, b.done-max(b.launched, until))
		until = max(until, b.done)
	}
	return sum
}

// table is what happened to the buckets of r in step t.
func (t timing) table(r *bucket.Reducer) []report.Bucket {
	names, stats := r.State().Buckets, r.Stats().Buckets
	var table []report.Bucket
	for i, b := range t.buckets {
		if i >= len(names) || i >= len(stats) {
			break
		}
		table = append(table, report.Bucket{
			Bytes: stats[i].Bytes, Parameters: names[i], ReadyMS: ms(b.ready), LaunchedMS: ms(b.launched), DoneMS: ms(b.done),
		})
	}
	return table
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
