// Package faulty makes another transport slower or worse, on a plan: a shaped
// link between each pair of ranks, and faults on chosen connections. It is for
// tests, and for seeing on one machine what a network does to a program.
//
// A sending side gets a FIFO of its own; what is posted there reaches the inner
// transport's FIFO when it would have arrived. Waiting is sleeping: a shaped link
// takes no core. Memory cannot be shared through it, so that all bytes pass the
// link.
package faulty

import (
	"context"
	"errors"
	"sync"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/transport"
)

// Config is the plan. The zero value changes nothing.
type Config struct {
	Link   Link
	Faults []Fault
}

// Transport decorates a transport. It has its name, and is no Mapper.
type Transport struct {
	transport.Transport
	config Config

	mu     sync.Mutex
	closed bool
	wires  map[[2]int]*wire // by source and destination
	sides  map[*sendSide]bool
}

var _ transport.Transport = (*Transport)(nil)

// New returns inner with the plan's faults; it owns inner from now on.
func New(inner transport.Transport, c Config) *Transport {
	return &Transport{Transport: inner, config: c, wires: map[[2]int]*wire{}, sides: map[*sendSide]bool{}}
}

// ConnectSend connects by the inner transport and puts the plan in front of it.
func (t *Transport) ConnectSend(ctx context.Context, c transport.Conn, to *transport.Peer, handle []byte) (transport.SendSide, error) {
	inner, err := t.Transport.ConnectSend(ctx, c, to, handle)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	refuse := func(err error) (transport.SendSide, error) {
		e := goccl.NewError("connect", errors.Join(err, inner.Close()))
		e.Transport, e.Rank, e.Peer, e.PeerAddr, e.Channel = t.Name(), c.Src, to.Rank, to.Host, c.Channel
		return nil, e
	}
	if t.closed {
		return refuse(goccl.ErrClosed)
	}
	pair := [2]int{c.Src, c.Dst}
	if t.wires[pair] == nil {
		t.wires[pair] = &wire{link: t.config.Link}
	}
	_, maps := t.Transport.(transport.Mapper)
	s, err := newSendSide(t, inner, c, to, !maps)
	if err != nil {
		return refuse(err)
	}
	t.sides[s] = true
	return s, nil
}

func (t *Transport) wire(c transport.Conn) *wire { return t.wires[[2]int{c.Src, c.Dst}] }

func (t *Transport) forget(s *sendSide) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.sides, s)
}

// Close ends the pumps without waiting for what is under way, and closes the
// inner transport. Idempotent.
func (t *Transport) Close() error {
	t.mu.Lock()
	t.closed = true
	sides := t.sides
	t.sides = map[*sendSide]bool{}
	t.mu.Unlock()
	for s := range sides {
		s.halt()
	}
	return t.Transport.Close()
}
