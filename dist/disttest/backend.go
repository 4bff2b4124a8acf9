package disttest

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	processgroup "github.com/goccl/goccl/process_group"
)

// backend is another backend with planned events.
type backend struct {
	processgroup.Backend
	events map[int]*event // by operation
	starts int            // Start has one caller at a time
	doomed atomic.Pointer[processgroup.Op]
}

var (
	_ processgroup.Backend   = (*backend)(nil)
	_ processgroup.Allocator = (*backend)(nil)
)

// newBackend returns b with those of events that concern this rank.
func newBackend(b processgroup.Backend, rank int, events []*event) *backend {
	p := &backend{Backend: b, events: map[int]*event{}}
	for _, e := range events {
		if e.rank == rank {
			p.events[e.op] = e
		}
	}
	return p
}

// Start implements processgroup.Backend.
func (b *backend) Start(op *processgroup.Op) error {
	b.starts++
	e := b.events[b.starts]
	if e == nil {
		return b.Backend.Start(op)
	}
	if e.delay > 0 {
		time.Sleep(e.delay)
	}
	if e.err != nil {
		return e.err
	}
	if e.panics {
		b.doomed.Store(op)
	}
	return b.Backend.Start(op)
}

// Wait implements processgroup.Backend. It panics on a rank that is to panic.
func (b *backend) Wait(ctx context.Context, op *processgroup.Op) error {
	if b.doomed.CompareAndSwap(op, nil) {
		panic(fmt.Sprintf("planned for %s #%d", op.Name(), op.Seq))
	}
	return b.Backend.Wait(ctx, op)
}

// NewBuffer implements processgroup.Allocator, where the other backend does.
func (b *backend) NewBuffer(n int, d goccl.DType) (device.Buffer, func() error, error) {
	a, ok := b.Backend.(processgroup.Allocator)
	if !ok {
		return device.Buffer{}, nil, goccl.ErrUnsupported
	}
	return a.NewBuffer(n, d)
}
