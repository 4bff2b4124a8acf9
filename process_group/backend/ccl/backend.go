// Package ccl is the library's own backend of process groups: it composes a
// communicator from transports, devices and a tuner, and turns the operations of
// a group into calls on it.
package ccl

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm"
	"github.com/goccl/goccl/device"
	processgroup "github.com/goccl/goccl/process_group"
)

// Backend runs a group's operations on a communicator.
type Backend struct {
	c     *comm.Communicator
	close func() error // what the backend owns besides the communicator; may be nil
}

var (
	_ processgroup.Backend   = (*Backend)(nil)
	_ processgroup.Locker    = (*Backend)(nil)
	_ processgroup.Joiner    = (*Backend)(nil)
	_ processgroup.Allocator = (*Backend)(nil)
	_ processgroup.Carrier   = (*Backend)(nil)
	_ processgroup.Control   = (*control)(nil)
	_ processgroup.Referee   = (*control)(nil)
)

// Wrap makes a backend of a communicator, which it then owns.
func Wrap(c *comm.Communicator) *Backend { return &Backend{c: c} }

// Name returns "ccl".
func (b *Backend) Name() string { return "ccl" }

// Communicator returns what the backend runs on.
func (b *Backend) Communicator() *comm.Communicator { return b.c }

// Attach implements processgroup.Backend.
func (b *Backend) Attach(op *processgroup.Op) { op.Impl = new(comm.Task) }

// Start implements processgroup.Backend.
func (b *Backend) Start(op *processgroup.Op) error {
	b.Lock().Lock()
	defer b.Lock().Unlock()
	return b.StartLocked(op)
}

// Test implements processgroup.Backend.
func (b *Backend) Test(op *processgroup.Op) (bool, error) { return b.c.Test(op.Impl.(*comm.Task)) }

// Wait implements processgroup.Backend.
func (b *Backend) Wait(ctx context.Context, op *processgroup.Op) error {
	return b.c.Wait(ctx, op.Impl.(*comm.Task))
}

// Lock implements processgroup.Locker: the communicator's queue and the group
// have one lock.
func (b *Backend) Lock() *sync.Mutex { return b.c.Lock() }

// StartLocked implements processgroup.Locker.
func (b *Backend) StartLocked(op *processgroup.Op) error {
	t := op.Impl.(*comm.Task)
	translate(op, t, b.c.Rank(), b.c.Size())
	if err := b.c.StartLocked(t); err != nil {
		return err
	}
	op.Chose(t.Algo, t.Proto, t.Channels)
	return nil
}

// TestLocked implements processgroup.Locker.
func (b *Backend) TestLocked(op *processgroup.Op) (bool, error) {
	return b.c.TestLocked(op.Impl.(*comm.Task))
}

// WaitLocked implements processgroup.Locker.
func (b *Backend) WaitLocked(ctx context.Context, op *processgroup.Op) error {
	return b.c.WaitLocked(ctx, op.Impl.(*comm.Task))
}

// Join implements processgroup.Joiner, for operations on device memory.
func (b *Backend) Join(op *processgroup.Op, s device.Stream) error {
	return b.c.JoinLocked(op.Impl.(*comm.Task), s)
}

// Transport implements processgroup.Carrier.
func (b *Backend) Transport() string {
	var names []string
	for q := range b.c.Size() {
		if name := b.c.TransportTo(q); q != b.c.Rank() && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if names == nil {
		return "self"
	}
	return strings.Join(names, ", ")
}

// Abort implements processgroup.Backend.
func (b *Backend) Abort(cause error) { b.c.Abort(cause) }

// Close implements processgroup.Backend.
func (b *Backend) Close() error {
	err := b.c.Close()
	if b.close != nil {
		if e := b.close(); err == nil {
			err = e
		}
	}
	return err
}

// NewBuffer implements processgroup.Allocator: memory that all ranks map.
func (b *Backend) NewBuffer(n int, d goccl.DType) (device.Buffer, func() error, error) {
	w, err := b.c.Alloc(max(n*d.Size(), 1))
	if err != nil {
		return device.Buffer{}, nil, err
	}
	return w.As(n, d), w.Close, nil
}

// Control returns the control plane of the communicator.
func (b *Backend) Control() processgroup.Control { return &control{b.c} }

// control is what a group needs of the communicator's control plane.
type control struct{ c *comm.Communicator }

// Fail implements processgroup.Control.
func (k *control) Fail(err error) { k.c.Fail(err) }

// Decide implements processgroup.Referee.
func (k *control) Decide(err error) error {
	k.c.Fail(err)
	// The communicator takes its own failure for the first after a second without
	// an answer.
	<-k.c.Failed()
	if first := k.c.Err(); !errors.Is(first, goccl.ErrClosed) {
		return first
	}
	return err
}

// OnFailure implements processgroup.Control.
func (k *control) OnFailure(f func(error)) { k.c.OnFailure(f) }

// MonitoredBarrier implements processgroup.Control.
func (k *control) MonitoredBarrier(ctx context.Context) ([]int, error) {
	return k.c.MonitoredBarrier(ctx)
}

// Laggards implements processgroup.Control.
func (k *control) Laggards(ctx context.Context, seq uint64) []processgroup.Lag {
	var out []processgroup.Lag
	for _, l := range k.c.Laggards(ctx, seq) {
		out = append(out, processgroup.Lag{Rank: l.Rank, Host: l.Host, PID: l.PID, Seq: l.Seq, State: l.State, What: l.What})
	}
	return out
}
