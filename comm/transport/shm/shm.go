// Package shm connects processes of one machine by memory segments that have no
// name: the receiver makes one for each connection and the sender maps it.
// Nothing is left behind however the processes end, and a size limit of /dev/shm
// does not matter.
package shm

import (
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/transport"
	"github.com/goccl/goccl/comm/transport/internal/memlink"
	"github.com/goccl/goccl/internal/shmem"
)

const name = "shm"

// Transport is the shm transport of one rank.
type Transport struct {
	watch watch

	mu     sync.Mutex
	closed bool
}

var (
	_ transport.Transport = (*Transport)(nil)
	_ transport.Mapper    = (*Transport)(nil)
)

// New returns a transport.
func New() *Transport { return &Transport{} }

// Available reports why this process cannot make segments that others map; nil
// when it can. It is what Peer.Shm says.
func Available() error {
	s, err := shmem.Create("goccl-probe", 64)
	if err != nil {
		return err
	}
	defer s.Close()
	peer, err := shmem.Open(s.Handle())
	if err != nil {
		return err
	}
	return peer.Close()
}

// Name returns "shm".
func (t *Transport) Name() string { return name }

// Announce returns when this process started, by which a peer tells it from a
// later one with the same pid.
func (t *Transport) Announce() ([]byte, error) {
	start, err := startTime(os.Getpid())
	if err != nil {
		return nil, fail("announce", err)
	}
	return encodeStart(start), nil
}

// CanConnect reports ranks of different machines, and a rank that cannot make
// segments.
func (t *Transport) CanConnect(src, dst *transport.Peer) error {
	if src.HostID != dst.HostID || src.HostID == 0 {
		return fmt.Errorf("ranks %d and %d share no memory: host ids %x and %x", src.Rank, dst.Rank, src.HostID, dst.HostID)
	}
	for _, p := range []*transport.Peer{src, dst} {
		if !p.Shm {
			return fmt.Errorf("rank %d cannot make shared segments", p.Rank)
		}
	}
	return nil
}

// SetupRecv makes the segment of the connection.
func (t *Transport) SetupRecv(_ context.Context, c transport.Conn, from *transport.Peer) (transport.RecvSide, error) {
	if err := c.FIFO.Check(); err != nil {
		return nil, failConn(c, from, err)
	}
	alive, err := t.follow(from)
	if err != nil {
		return nil, failConn(c, from, err)
	}
	s, err := shmem.Create("goccl-fifo", memlink.Bytes(c.FIFO))
	if err != nil {
		return nil, failConn(c, from, err)
	}
	return memlink.NewRecv(memlink.End{Transport: name, Conn: c, Rank: c.Dst, Peer: from, Mem: s.Mem(), Handle: s.Handle(),
		Alive: alive, Connected: func() { s.Seal() }, Free: s.Close}), nil
}

// ConnectSend maps the receiver's segment.
func (t *Transport) ConnectSend(_ context.Context, c transport.Conn, to *transport.Peer, handle []byte) (transport.SendSide, error) {
	alive, err := t.follow(to)
	if err != nil {
		return nil, failConn(c, to, err)
	}
	s, err := shmem.Open(handle)
	if err != nil {
		if dead := alive(); dead != nil {
			err = dead
		}
		return nil, failConn(c, to, err)
	}
	side, err := memlink.NewSend(memlink.End{Transport: name, Conn: c, Rank: c.Src, Peer: to, Mem: s.Mem(), Alive: alive, Free: s.Close})
	if err != nil {
		return nil, err
	}
	return side, nil
}

// follow returns a function that reports the end of the peer's process.
func (t *Transport) follow(p *transport.Peer) (func() error, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, goccl.ErrClosed
	}
	if p.PID == os.Getpid() {
		return func() error { return nil }, nil
	}
	return t.watch.follow(p.PID, p.Blob[name])
}

// Close ends the watch over peers' processes. Sides and segments that exist
// work until they are closed. Idempotent.
func (t *Transport) Close() error {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	return t.watch.close()
}

func fail(op string, err error) *goccl.Error {
	e := goccl.NewError(op, err)
	e.Transport = name
	return e
}

func failConn(c transport.Conn, peer *transport.Peer, err error) error {
	e := fail("connect", err)
	e.Peer, e.Channel = peer.Rank, c.Channel
	e.PeerAddr = fmt.Sprintf("%s pid %d", peer.Host, peer.PID)
	return e
}

// segment is memory for windows and scratch.
type segment struct{ *shmem.Segment }

var _ transport.Segment = segment{}

// Alloc makes a segment. Its descriptor stays open until Close, for peers that
// map it later.
func (t *Transport) Alloc(bytes int) (transport.Segment, error) {
	s, err := shmem.Create("goccl-window", bytes)
	if err != nil {
		return nil, fail("alloc", err)
	}
	return segment{s}, nil
}

// Map maps a segment of a peer.
func (t *Transport) Map(_ context.Context, peer *transport.Peer, handle []byte) (transport.Segment, error) {
	s, err := shmem.Open(handle)
	if err != nil {
		e := fail("map", err)
		e.Peer, e.PeerAddr = peer.Rank, fmt.Sprintf("%s pid %d", peer.Host, peer.PID)
		return nil, e
	}
	return segment{s}, nil
}
