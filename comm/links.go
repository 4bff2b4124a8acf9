package comm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/bootstrap"
	"github.com/goccl/goccl/comm/exec"
	"github.com/goccl/goccl/comm/plan"
	"github.com/goccl/goccl/comm/transport"
)

// links makes connections when a Program first needs them, and owns them.
type links struct {
	self    int
	peers   []transport.Peer
	ts      []transport.Transport
	session *bootstrap.Session
	life    context.Context
	log     *slog.Logger
	// patience bounds the way to a connection. It is longer than an operation's
	// timeout, whose error has more to say.
	patience time.Duration

	mu     sync.Mutex
	closed bool
	sends  map[link]transport.SendSide
	recvs  map[link]transport.RecvSide
}

// link names one end of a connection.
type link struct {
	channel, peer int
	index         uint8
	proto         goccl.Protocol
}

// The messages by which a sender asks for a receiver's handle. Both carry the
// link in the lower bits, as the sender and the receiver both see it.
const (
	askHandle  = 1 << 63
	haveHandle = 1 << 62
)

func (l link) bits() uint64 {
	return uint64(l.channel)<<16 | uint64(l.index)<<8 | uint64(l.proto)
}

func linkFrom(peer int, bits uint64) link {
	return link{channel: int(bits >> 16 & 0xff), peer: peer, index: uint8(bits >> 8), proto: goccl.Protocol(bits)}
}

func (l link) conn(src, dst int) transport.Conn {
	spec := transport.FIFOSpec{Slots: fifoSlots, SlotBytes: slotSimple}
	if l.proto == goccl.LL {
		spec = transport.FIFOSpec{Slots: fifoSlots, SlotBytes: slotLL, Inline: true}
	}
	return transport.Conn{Channel: l.channel, Index: int(l.index), Proto: l.proto, Src: src, Dst: dst, FIFO: spec}
}

func linkOf(c plan.Conn, channel int) link {
	return link{channel: channel, peer: int(c.Peer), index: c.Index, proto: c.Proto}
}

// answer serves a sender that asks for a handle. It runs on a goroutine of its
// own, whatever this rank's operations are doing, so that a sender never waits
// for the receiver's user to get as far.
func (l *links) answer(k link) error {
	if k.peer == l.self || k.index > 1 || (k.proto != goccl.LL && k.proto != goccl.Simple) {
		return fmt.Errorf("%w: rank %d asks for a connection that cannot be", goccl.ErrInvalid, k.peer)
	}
	side, err := l.offer(k)
	if err != nil {
		return err
	}
	if err := l.session.Send(l.life, k.peer, haveHandle|k.bits(), side.Handle()); err != nil {
		return l.failed(k, nil, "send the handle", err)
	}
	if _, err := side.FIFO(l.life); err != nil {
		return l.failed(k, nil, "wait for the sender", err)
	}
	return nil
}

// offer returns the receiving side of a link, set up when it is new.
func (l *links) offer(k link) (transport.RecvSide, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, goccl.ErrClosed
	}
	if side := l.recvs[k]; side != nil {
		return side, nil
	}
	conn := k.conn(k.peer, l.self)
	t, err := transport.Select(l.ts, &l.peers[k.peer], &l.peers[l.self])
	if err != nil {
		return nil, err
	}
	side, err := t.SetupRecv(l.life, conn, &l.peers[k.peer])
	if err != nil {
		return nil, l.failed(k, t, "set up the receiving side", err)
	}
	l.recvs[k] = side
	return side, nil
}

// Recv implements exec.Links.
func (l *links) Recv(c plan.Conn, channel int) (*transport.Recv, error) {
	side, err := l.offer(linkOf(c, channel))
	if err != nil {
		return nil, err
	}
	return side.Early(), nil
}

// Send implements exec.Links.
func (l *links) Send(c plan.Conn, channel int) (*transport.Send, error) {
	k := linkOf(c, channel)
	l.mu.Lock()
	s := l.sends[k]
	l.mu.Unlock()
	if s != nil {
		return s.FIFO(), nil
	}
	t, err := transport.Select(l.ts, &l.peers[l.self], &l.peers[k.peer])
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(l.life, l.patience)
	defer cancel()
	if err := l.session.Send(ctx, k.peer, askHandle|k.bits(), nil); err != nil {
		return nil, l.failed(k, t, "ask for the receiver's handle", err)
	}
	handle, err := l.session.Recv(ctx, k.peer, haveHandle|k.bits())
	if err != nil {
		return nil, l.failed(k, t, "wait for the receiver's handle", err)
	}
	if s, err = t.ConnectSend(l.life, k.conn(l.self, k.peer), &l.peers[k.peer], handle); err != nil {
		return nil, l.failed(k, t, "connect", err)
	}
	l.mu.Lock()
	l.sends[k] = s
	l.mu.Unlock()
	l.log.Debug(k.conn(l.self, k.peer).String()+" via "+t.Name(), "proto", k.proto.String())
	return s.FIFO(), nil
}

// transportTo names the transport of a direction, for logs and bench headers.
func (l *links) transportTo(peer int) string {
	t, err := transport.Select(l.ts, &l.peers[l.self], &l.peers[peer])
	if err != nil {
		return "none"
	}
	return t.Name()
}

// err returns the first broken link. The caller holds the engine's token, so no
// link is being made; a lock that is taken means Close has begun.
func (l *links) err() error {
	if !l.mu.TryLock() {
		return nil
	}
	defer l.mu.Unlock()
	for k, s := range l.sends {
		if err := s.Err(); err != nil {
			return l.failed(k, nil, "send", err)
		}
	}
	for k, r := range l.recvs {
		if err := r.Err(); err != nil {
			return l.failed(k, nil, "receive", err)
		}
	}
	return nil
}

func (l *links) failed(k link, t transport.Transport, what string, err error) error {
	if cause := context.Cause(l.life); cause != nil {
		return cause
	}
	e := goccl.NewError(what, err)
	e.Rank, e.Peer, e.Channel = l.self, k.peer, k.channel
	e.PeerAddr = fmt.Sprintf("host %s, pid %d", l.peers[k.peer].Host, l.peers[k.peer].PID)
	e.Transport = l.transportTo(k.peer)
	if t != nil {
		e.Transport = t.Name()
	}
	return e
}

// close flushes what was sent, bounded by ctx, and frees both sides.
func (l *links) close(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	var errs []error
	for _, s := range l.sends {
		errs = append(errs, s.Flush(ctx), s.Close())
	}
	for _, r := range l.recvs {
		errs = append(errs, r.Close())
	}
	clear(l.sends)
	clear(l.recvs)
	return errors.Join(errs...)
}

var _ exec.Links = (*links)(nil)
