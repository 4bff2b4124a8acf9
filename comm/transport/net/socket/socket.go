// Package socket connects ranks of any hosts by TCP. A transport has one
// listener; the sender of a connection dials it and names the connection by a
// token that only the receiver's handle holds. On each side a pump goroutine moves
// frames between the socket and a FIFO of this process. TCP is the flow control:
// a receiver whose FIFO is full stops reading.
package socket

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/transport"
)

const name = "net/socket"

// Transport is the socket transport of one rank.
type Transport struct {
	config   Config
	listener net.Listener
	addrs    []string
	ctx      context.Context // ends with Close
	stop     context.CancelFunc
	wait     sync.WaitGroup // accept loop and handshakes

	mu      sync.Mutex
	closed  bool
	waiting map[token]*recvSide
	clients map[net.Conn]bool // that have not said who they are
	sides   map[aborter]bool  // that have not been closed
}

// aborter is a side as the transport sees it: abort closes its connection at
// once and waits for its goroutines.
type aborter interface{ abort() }

var _ transport.Transport = (*Transport)(nil)

// New opens the listener and accepts from now on.
func New(c Config) (*Transport, error) {
	fail := func(err error) (*Transport, error) {
		e := goccl.NewError("listen", err)
		e.Transport = name
		return nil, e
	}
	if err := c.check(); err != nil {
		return fail(fmt.Errorf("%w: %w", goccl.ErrInvalid, err))
	}
	l, addrs, err := listen(c)
	if err != nil {
		return fail(err)
	}
	t := &Transport{config: c.withDefaults(), listener: l, addrs: addrs,
		waiting: map[token]*recvSide{}, clients: map[net.Conn]bool{}, sides: map[aborter]bool{}}
	t.ctx, t.stop = context.WithCancel(context.Background())
	t.wait.Go(t.accept)
	return t, nil
}

// Name returns "net/socket".
func (t *Transport) Name() string { return name }

// Addrs returns the addresses at which peers reach the listener, best first.
func (t *Transport) Addrs() []string { return t.addrs }

// Announce returns Addrs, encoded.
func (t *Transport) Announce() ([]byte, error) { return encodeAddrs(t.addrs), nil }

// reach returns where the peer listens.
func reach(p *transport.Peer) ([]string, error) {
	if b := p.Blob[name]; b != nil {
		return decodeAddrs(b)
	}
	return p.Addrs, nil
}

// CanConnect reports a receiver without an address, and one on another host that
// listens on loopback only.
func (t *Transport) CanConnect(src, dst *transport.Peer) error {
	addrs, err := reach(dst)
	if err != nil {
		return err
	}
	if len(addrs) == 0 {
		return fmt.Errorf("rank %d announced no address", dst.Rank)
	}
	if src.HostID == dst.HostID {
		return nil
	}
	for _, a := range addrs {
		if host, _, err := net.SplitHostPort(a); err == nil && !loopback(host) {
			return nil
		}
	}
	return fmt.Errorf("rank %d is on another host and listens on loopback only (%s): give the transport an address or interfaces", dst.Rank, addrs[0])
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// SetupRecv makes the FIFO and a token for its sender.
func (t *Transport) SetupRecv(_ context.Context, c transport.Conn, from *transport.Peer) (transport.RecvSide, error) {
	side, err := newRecvSide(t, c, from)
	if err != nil {
		return nil, fail(c.Dst, c, from, "", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, fail(c.Dst, c, from, "", goccl.ErrClosed)
	}
	t.waiting[side.token] = side
	t.sides[side] = true
	return side, nil
}

// ConnectSend dials the receiver. It tries its addresses in order, and all of them
// again while they are unreachable, as long as ctx and the handshake timeout
// allow.
func (t *Transport) ConnectSend(ctx context.Context, c transport.Conn, to *transport.Peer, handle []byte) (transport.SendSide, error) {
	h := hello{conn: c}
	addrs, err := reach(to)
	switch {
	case err != nil:
	case len(handle) != len(h.token):
		err = fmt.Errorf("%w: handle of %d bytes, want %d", goccl.ErrInvalid, len(handle), len(h.token))
	case len(addrs) == 0:
		err = fmt.Errorf("%w: the peer announced no address", goccl.ErrInvalid)
	default:
		err = c.FIFO.Check()
	}
	if err != nil {
		return nil, fail(c.Src, c, to, "", err)
	}
	copy(h.token[:], handle)
	conn, err := t.dial(ctx, addrs, h)
	if err != nil {
		return nil, fail(c.Src, c, to, addrs[0], err)
	}
	side, err := newSendSide(t, c, to, conn)
	if err != nil {
		return nil, fail(c.Src, c, to, addrs[0], errors.Join(err, conn.Close()))
	}
	t.mu.Lock()
	if !t.closed {
		t.sides[side] = true
		t.mu.Unlock()
		return side, nil
	}
	t.mu.Unlock()
	side.abort()
	return nil, fail(c.Src, c, to, addrs[0], goccl.ErrClosed)
}

// fail makes the error of a rank that cannot connect to its peer.
func fail(rank int, c transport.Conn, peer *transport.Peer, addr string, err error) error {
	return describe("connect", rank, c, peer, addr, err)
}

// describe makes the error of the given rank about its peer.
func describe(op string, rank int, c transport.Conn, peer *transport.Peer, addr string, err error) error {
	e := goccl.NewError(op, err)
	e.Transport, e.Rank, e.Peer, e.Channel, e.PeerAddr = name, rank, peer.Rank, c.Channel, peer.Host
	if addr != "" {
		e.PeerAddr = peer.Host + " " + addr
	}
	return e
}

func newToken() (k token, err error) {
	_, err = rand.Read(k[:])
	return k, err
}

// forget takes the side out of the transport's books.
func (t *Transport) forget(side aborter, k token) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.sides, side)
	delete(t.waiting, k)
}

// Close closes the listener and every side that is still open, without waiting
// for data to leave: close sending sides first. Idempotent.
func (t *Transport) Close() error {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return nil
	}
	t.closed = true
	sides := t.sides
	t.sides, t.waiting = map[aborter]bool{}, map[token]*recvSide{}
	for conn := range t.clients {
		conn.Close()
	}
	t.mu.Unlock()
	t.stop()
	err := t.listener.Close()
	for side := range sides {
		side.abort()
	}
	t.wait.Wait()
	return err
}
