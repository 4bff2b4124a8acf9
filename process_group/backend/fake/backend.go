package fake

import (
	"context"
	"fmt"
	"sync"

	"github.com/goccl/goccl"
	processgroup "github.com/goccl/goccl/process_group"
)

// Backend is a processgroup.Backend that moves nothing: an operation ends when
// the test calls Complete or Fail, or at once. It is safe for concurrent use.
type Backend struct {
	immediate bool

	mu      sync.Mutex
	pending []*processgroup.Op // started and not ended, oldest first
	started int
	cause   error
	changed chan struct{} // closed and replaced at each change that someone waits for
	waiting int
	closed  bool
}

var _ processgroup.Backend = (*Backend)(nil)

// state is what the backend keeps in Op.Impl.
type state struct {
	done bool
	err  error
}

// New returns a backend whose operations end on command.
func New() *Backend { return &Backend{changed: make(chan struct{})} }

// Immediate returns a backend whose operations have ended when their call
// returns. Outputs are left as they are.
func Immediate() *Backend { return &Backend{immediate: true, changed: make(chan struct{})} }

// Group returns rank of a group of size on a backend whose operations end on
// command. The caller closes the group.
func Group(rank, size int) (*processgroup.Group, *Backend) {
	b := New()
	return processgroup.New(processgroup.Config{Name: "fake", Rank: rank, Size: size, Backend: b}), b
}

// Name returns "fake".
func (b *Backend) Name() string { return "fake" }

// Attach implements processgroup.Backend.
func (b *Backend) Attach(op *processgroup.Op) { op.Impl = new(state) }

// Start implements processgroup.Backend.
func (b *Backend) Start(op *processgroup.Op) error {
	st := op.Impl.(*state)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.started++
	*st = state{done: b.immediate || b.cause != nil, err: b.cause}
	op.Chose(goccl.Auto, goccl.AutoProto, 0)
	if !st.done {
		b.pending = append(b.pending, op)
	}
	b.wake()
	return nil
}

// wake tells all that wait for a change. b.mu is held.
func (b *Backend) wake() {
	if b.waiting > 0 {
		close(b.changed)
		b.changed = make(chan struct{})
		b.waiting = 0
	}
}

// Test implements processgroup.Backend.
func (b *Backend) Test(op *processgroup.Op) (bool, error) {
	st := op.Impl.(*state)
	b.mu.Lock()
	defer b.mu.Unlock()
	return st.done, st.err
}

// Wait implements processgroup.Backend.
func (b *Backend) Wait(ctx context.Context, op *processgroup.Op) error {
	st := op.Impl.(*state)
	var err error
	if !b.await(ctx, func() bool { err = st.err; return st.done }) {
		return fmt.Errorf("fake: wait for %s: %w", op.Name(), context.Cause(ctx))
	}
	return err
}

// await blocks until ok, called with b.mu held, is true; false when ctx ended.
func (b *Backend) await(ctx context.Context, ok func() bool) bool {
	for {
		b.mu.Lock()
		if ok() {
			b.mu.Unlock()
			return true
		}
		b.waiting++
		changed := b.changed
		b.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// Abort implements processgroup.Backend.
func (b *Backend) Abort(cause error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cause == nil {
		b.cause = cause
	}
	for _, op := range b.pending {
		*op.Impl.(*state) = state{done: true, err: b.cause}
	}
	b.pending = nil
	b.wake()
}

// Close implements processgroup.Backend.
func (b *Backend) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	return nil
}

// Closed reports whether the group has closed the backend.
func (b *Backend) Closed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// Started returns how many operations have been started, ended ones too.
func (b *Backend) Started() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.started
}

// Pending returns the operations that have not ended, oldest first. An Op may be
// read until it is completed.
func (b *Backend) Pending() []*processgroup.Op {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]*processgroup.Op(nil), b.pending...)
}

// AwaitPending blocks until at least n operations are pending, or ctx ends.
func (b *Backend) AwaitPending(ctx context.Context, n int) error {
	if !b.await(ctx, func() bool { return len(b.pending) >= n }) {
		return fmt.Errorf("fake: wait for %d pending operations: %w", n, context.Cause(ctx))
	}
	return nil
}

// Complete ends the oldest pending operation well, after fill, which may be nil
// and puts the result into its output. It returns false when nothing is pending.
func (b *Backend) Complete(fill func(op *processgroup.Op)) bool {
	return b.end(fill, nil)
}

// Fail ends the oldest pending operation with err.
func (b *Backend) Fail(err error) bool { return b.end(nil, err) }

func (b *Backend) end(fill func(op *processgroup.Op), err error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.pending) == 0 {
		return false
	}
	op := b.pending[0]
	b.pending = append([]*processgroup.Op(nil), b.pending[1:]...)
	if fill != nil {
		fill(op)
	}
	*op.Impl.(*state) = state{done: true, err: err}
	b.wake()
	return true
}
