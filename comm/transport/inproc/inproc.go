// Package inproc connects ranks that are goroutines of one process: a FIFO is a
// piece of the Go heap that both hold. It works on every system.
package inproc

import (
	"context"
	"fmt"
	"sync"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/transport"
	"github.com/goccl/goccl/comm/transport/internal/memlink"
)

const name = "inproc"

// Transport is the inproc transport of one rank. Ranks of one process may share
// one or have one each.
type Transport struct {
	mu     sync.Mutex
	closed bool
	open   map[uint64]*piece // what this transport has published
}

var (
	_ transport.Transport = (*Transport)(nil)
	_ transport.Mapper    = (*Transport)(nil)
)

// New returns a transport.
func New() *Transport { return &Transport{open: map[uint64]*piece{}} }

// Name returns "inproc".
func (t *Transport) Name() string { return name }

// Announce returns nil: Peer.Process says all.
func (t *Transport) Announce() ([]byte, error) { return nil, nil }

// CanConnect reports ranks of different processes.
func (t *Transport) CanConnect(src, dst *transport.Peer) error {
	if src.Process != dst.Process || src.Process == 0 {
		return fmt.Errorf("ranks %d and %d are different processes", src.Rank, dst.Rank)
	}
	return nil
}

// SetupRecv makes the FIFO and publishes it in this process.
func (t *Transport) SetupRecv(_ context.Context, c transport.Conn, from *transport.Peer) (transport.RecvSide, error) {
	if err := c.FIFO.Check(); err != nil {
		return nil, fail("connect", c, from, err)
	}
	p, err := t.publish(memlink.Bytes(c.FIFO), &c)
	if err != nil {
		return nil, fail("connect", c, from, err)
	}
	return memlink.NewRecv(memlink.End{Transport: name, Conn: c, Rank: c.Dst, Peer: from, Mem: p.mem, Handle: p.handle,
		Local: true, Free: func() error { t.withdraw(p); return nil }}), nil
}

// ConnectSend finds the FIFO that the handle names.
func (t *Transport) ConnectSend(_ context.Context, c transport.Conn, to *transport.Peer, handle []byte) (transport.SendSide, error) {
	p, err := t.find(handle)
	if err == nil && (p.conn == nil || *p.conn != c) {
		err = fmt.Errorf("%w: the handle is not of %s", goccl.ErrMismatch, c)
	}
	if err != nil {
		return nil, fail("connect", c, to, err)
	}
	s, err := memlink.NewSend(memlink.End{Transport: name, Conn: c, Rank: c.Src, Peer: to, Mem: p.mem,
		Local: true, Free: func() error { return nil }})
	if err != nil {
		return nil, err
	}
	return s, nil
}

func fail(op string, c transport.Conn, peer *transport.Peer, err error) error {
	e := goccl.NewError(op, err)
	e.Transport, e.Peer, e.PeerAddr, e.Channel = name, peer.Rank, peer.Host, c.Channel
	return e
}

// Close withdraws everything that this transport has published and refuses
// further calls. Sides that exist keep their memory. Idempotent.
func (t *Transport) Close() error {
	t.mu.Lock()
	open := t.open
	t.open, t.closed = nil, true
	t.mu.Unlock()
	for _, p := range open {
		forget(p)
	}
	return nil
}
