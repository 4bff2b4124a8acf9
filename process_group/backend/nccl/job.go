package nccl

import (
	"sync"
	"sync/atomic"

	"github.com/goccl/goccl/device/cuda"
	processgroup "github.com/goccl/goccl/process_group"
)

// The phases of a job. It goes through them in this order and may skip some.
const (
	queued    uint32 = iota
	launching        // handed to NCCL, which is still at it in the background
	running          // on the stream
	ended            // err is set
)

// job is what the backend keeps for an Op. The holder of the engine's turn moves it
// up to running; whoever asks ends it.
type job struct {
	op    *processgroup.Op
	calls []call
	phase atomic.Uint32

	mu  sync.Mutex // orders the ends
	err error

	// Of the port that launched it.
	on    *cuda.Stream // where it runs
	event *cuda.Event  // done when it is; made once and recorded again
	// captured says that it was recorded into a graph and has not run.
	captured bool
}

// reset makes the job of an Op that is started anew.
func (j *job) reset() {
	j.err = nil
	j.phase.Store(queued)
}

// end ends the job unless it has ended, and returns how it did.
func (j *job) end(err error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.phase.Load() != ended {
		j.err = err
		j.phase.Store(ended)
	}
	return j.err
}

// advance moves the job from one phase to the next, unless it was ended meanwhile.
func (j *job) advance(from, to uint32) { j.phase.CompareAndSwap(from, to) }
