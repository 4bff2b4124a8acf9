package comm

import (
	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/exec"
	"github.com/goccl/goccl/comm/plan"
	"github.com/goccl/goccl/device"
)

// Accelerator runs Programs on the memory of one device: package comm/exec/gpu has
// one for GPUs that reach each other. A communicator owns the one it is given.
//
// Announce comes first, then Meet, once; then Bind by one goroutine at a time.
type Accelerator interface {
	// Device is what the buffers lie on. It stays its owner's.
	Device() device.Device
	// Announce returns what the other ranks need to know to reach this one.
	Announce() ([]byte, error)
	// Meet connects this rank with the others, given what all of them announced, by
	// rank. An error names the rank that cannot be reached, and why.
	Meet(announced [][]byte) error
	Limits() Limits
	// Bind makes a Program ready. It waits for no peer.
	Bind(p *plan.Program) (Launcher, error)
	// Abort ends what runs, within milliseconds, and all that is started later. Any
	// goroutine may call it, also after Close; it does not wait.
	Abort()
	// Close frees everything. What all ranks have started has ended.
	Close() error
}

// Launcher is a Program that is ready.
type Launcher interface {
	// Launch queues the operation on s. The buffers stay until it has ended there.
	Launch(a *exec.Args, s device.Stream) error
}

// Limits are what a Program may ask of an Accelerator.
type Limits struct {
	Channels           int
	LL, Simple         int64 // most bytes of a chunk in a FIFO, by protocol
	ShotLL, ShotSimple int64 // most bytes of a chunk in scratch
}

// shot returns the most bytes of a one-shot message by protocol p: one chunk in
// each channel.
func (l Limits) shot(p goccl.Protocol) int64 {
	if p == goccl.LL {
		return l.ShotLL * int64(l.Channels)
	}
	return l.ShotSimple * int64(l.Channels)
}
