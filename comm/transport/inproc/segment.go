package inproc

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/transport"
	"github.com/goccl/goccl/internal/shmem"
)

// segment is a piece as its maker (t set) or another rank sees it.
type segment struct {
	t      *Transport
	p      *piece
	closed atomic.Bool
}

var _ transport.Segment = (*segment)(nil)

// Alloc makes a segment on the Go heap. Slices over it keep it alive.
func (t *Transport) Alloc(bytes int) (transport.Segment, error) {
	p, err := t.publish(bytes, nil)
	if err != nil {
		return nil, wrap("alloc", err)
	}
	return &segment{t: t, p: p}, nil
}

// Map finds a segment of another rank of this process.
func (t *Transport) Map(_ context.Context, peer *transport.Peer, handle []byte) (transport.Segment, error) {
	p, err := t.find(handle)
	if err == nil && p.conn != nil {
		err = fmt.Errorf("%w: the handle is of a connection", goccl.ErrInvalid)
	}
	if err != nil {
		e := wrap("map", err)
		e.Peer, e.PeerAddr = peer.Rank, peer.Host
		return nil, e
	}
	return &segment{p: p}, nil
}

func wrap(op string, err error) *goccl.Error {
	e := goccl.NewError(op, err)
	e.Transport = name
	return e
}

func (s *segment) Mem() shmem.Mem { return s.p.mem }

func (s *segment) Handle() []byte { return s.p.handle }

func (s *segment) Close() error {
	if s.closed.CompareAndSwap(false, true) && s.t != nil {
		s.t.withdraw(s.p)
	}
	return nil
}
