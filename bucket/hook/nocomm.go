package hook

import (
	"context"

	"github.com/goccl/goccl/bucket"
	"github.com/goccl/goccl/process_group"
)

// NoComm reduces nothing: every rank keeps its own gradients. A job with it shows
// what a step costs without the wire; bucket.NoComm does the same for single steps
// of a job that trains.
type NoComm struct{}

var _ bucket.Hook = NoComm{}

// Start returns a Work that has ended.
func (NoComm) Start(_ context.Context, b *bucket.Bucket) processgroup.Work {
	return b.Group().Coalesce(func() error { return nil })
}

// String names the hook. Ranks compare it.
func (NoComm) String() string { return "nocomm" }
