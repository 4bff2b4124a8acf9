package bucket

import (
	"context"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/process_group"
)

// Hook reduces the buckets of a Reducer in place of the AllReduce that averages
// them. Give all ranks the same. The bucket is the hook's from Start until the
// Work it returned has ended and, for a Finisher, Finish has returned.
//
// Ranks compare hooks at construction by their String method, if they have one,
// and else by type. A hook that needs memory, or work after the operation, implements Preparer or
// Finisher as well.
type Hook interface {
	// Start begins the reduction of b and returns at once. It runs on the
	// goroutine whose Ready filled the bucket, one call at a time, in the order
	// of the buckets; the operations it issues on b.Group() must be the same on
	// all ranks. A result other than the average is the hook's decision.
	Start(ctx context.Context, b *Bucket) processgroup.Work
}

// Finisher is a Hook that has work to do when the operation of a bucket has
// ended, such as expanding what was compressed. It runs inside Reducer.Finish,
// in the order of the buckets.
type Finisher interface {
	Finish(ctx context.Context, b *Bucket) error
}

// Preparer is a Hook that wants to see the buckets before the first step and
// after each new layout, to allocate what it needs. It is called on all ranks
// together and may use collective calls of g. bs and what is in it stay valid
// until the next call.
type Preparer interface {
	Prepare(ctx context.Context, g *processgroup.Group, bs []*Bucket) error
}

// averageHook is the hook of those who give none.
type averageHook struct{}

var _ Hook = averageHook{}

// Start averages the bucket in place.
func (averageHook) Start(_ context.Context, b *Bucket) processgroup.Work {
	return b.Group().AllReduce(b.Buffer(), goccl.Avg, b.Options()...)
}
