package bucket

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/device/host"
	"github.com/goccl/goccl/process_group"
)

// pretend is the CPU under the name of a GPU: its memory is host memory that nothing
// but its streams and the backend below touches, its streams are goroutines.
type pretend struct{ *host.Device }

var gpu0 = device.ID{Kind: device.CUDA}

func (pretend) ID() device.ID { return gpu0 }

// queueing is the backend of one rank: operations run on a stream of its own, after
// the stream of their call, as those of NCCL do. It has no host memory to move.
type queueing struct {
	processgroup.Backend
	rank int
	own  device.Stream
	meet *meeting

	mu   sync.Mutex
	jobs map[*processgroup.Op]*queued
}

type queued struct {
	done  chan struct{}
	event device.Event
	err   error
}

var (
	_ processgroup.Joiner    = (*queueing)(nil)
	_ processgroup.Exchanger = (*queueing)(nil)
)

func (q *queueing) Start(op *processgroup.Op) error {
	for _, b := range append([]*processgroup.Op{op}, op.Parts...) {
		if b.Src.Count > 0 && b.Src.Device != gpu0 || b.Dst.Count > 0 && b.Dst.Device != gpu0 {
			return fmt.Errorf("%w: memory of the host", goccl.ErrUnsupported)
		}
		if b.Stream == nil {
			continue
		}
		e, err := b.Stream.Record()
		if err == nil {
			err = q.own.WaitEvent(e)
		}
		if err != nil {
			return err
		}
	}
	j := &queued{done: make(chan struct{})}
	err := q.own.(*host.Stream).Do(func() {
		defer close(j.done)
		if j.err = q.Backend.Start(op); j.err == nil {
			j.err = q.Backend.Wait(context.Background(), op)
		}
	})
	if err == nil {
		j.event, err = q.own.Record()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.jobs[op] = j
	return err
}

func (q *queueing) job(op *processgroup.Op) *queued {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.jobs[op]
}

func (q *queueing) Test(op *processgroup.Op) (bool, error) {
	j := q.job(op)
	select {
	case <-j.done:
		return true, j.err
	default:
		return false, nil
	}
}

func (q *queueing) Wait(ctx context.Context, op *processgroup.Op) error {
	j := q.job(op)
	select {
	case <-j.done:
		return j.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (q *queueing) Join(op *processgroup.Op, s device.Stream) error {
	return s.WaitEvent(q.job(op).event)
}

func (q *queueing) Close() error { return errors.Join(q.Backend.Close(), q.own.Close()) }

func (q *queueing) Exchange(ctx context.Context, data []byte) ([][]byte, error) {
	if len(data) > maxExchange {
		return nil, goccl.ErrInvalid
	}
	return q.meet.exchange(ctx, q.rank, data)
}

// meeting is where the ranks exchange bytes, each in its own order.
type meeting struct {
	mu     sync.Mutex
	next   []int // of each rank
	rounds map[int]*turn
}

type turn struct {
	parts [][]byte
	left  int
	done  chan struct{}
}

func (m *meeting) exchange(ctx context.Context, rank int, data []byte) ([][]byte, error) {
	m.mu.Lock()
	at := m.next[rank]
	m.next[rank]++
	t := m.rounds[at]
	if t == nil {
		t = &turn{parts: make([][]byte, len(m.next)), left: len(m.next), done: make(chan struct{})}
		m.rounds[at] = t
	}
	t.parts[rank] = append([]byte(nil), data...)
	if t.left--; t.left == 0 {
		close(t.done)
		delete(m.rounds, at)
	}
	m.mu.Unlock()
	select {
	case <-t.done:
		return t.parts, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
