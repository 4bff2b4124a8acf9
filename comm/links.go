package comm

import (
	"context"
	"errors"
	"fmt"
	"sync"

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

	mu    sync.Mutex
	sends map[link]transport.SendSide
	recvs map[link]transport.RecvSide
}

// link names one end of a connection.
type link struct {
	channel, peer int
	index         uint8
	proto         goccl.Protocol
}

// tag is the name under which a receiver's handle travels to the sender.
func (l link) tag() uint64 {
	return 1<<63 | uint64(l.channel)<<16 | uint64(l.index)<<8 | uint64(l.proto)
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

// prepare sets up every receiving side of p and sends the handles off before
// anything waits, so that two ranks never wait for each other's handle.
func (l *links) prepare(p *plan.Program) error {
	for ch, row := range p.Rows {
		for _, c := range p.Conns[row.ConnLo : row.ConnLo+row.ConnN] {
			if c.Send {
				continue
			}
			if err := l.offer(linkOf(c, ch)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *links) offer(k link) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.recvs[k] != nil {
		return nil
	}
	conn := k.conn(k.peer, l.self)
	t, err := transport.Select(l.ts, &l.peers[k.peer], &l.peers[l.self])
	if err != nil {
		return err
	}
	side, err := t.SetupRecv(l.life, conn, &l.peers[k.peer])
	if err != nil {
		return l.failed(k, t, "set up the receiving side", err)
	}
	if err := l.session.Send(l.life, k.peer, k.tag(), side.Handle()); err != nil {
		return errors.Join(l.failed(k, t, "send the handle", err), side.Close())
	}
	l.recvs[k] = side
	return nil
}

// Recv implements exec.Links.
func (l *links) Recv(c plan.Conn, channel int) (*transport.Recv, error) {
	k := linkOf(c, channel)
	if err := l.offer(k); err != nil {
		return nil, err
	}
	l.mu.Lock()
	side := l.recvs[k]
	l.mu.Unlock()
	f, err := side.FIFO(l.life)
	if err != nil {
		return nil, l.failed(k, nil, "wait for the sender", err)
	}
	return f, nil
}

// Send implements exec.Links.
func (l *links) Send(c plan.Conn, channel int) (*transport.Send, error) {
	k := linkOf(c, channel)
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.sends[k]; s != nil {
		return s.FIFO(), nil
	}
	t, err := transport.Select(l.ts, &l.peers[l.self], &l.peers[k.peer])
	if err != nil {
		return nil, err
	}
	handle, err := l.session.Recv(l.life, k.peer, k.tag())
	if err != nil {
		return nil, l.failed(k, t, "wait for the receiver's handle", err)
	}
	s, err := t.ConnectSend(l.life, k.conn(l.self, k.peer), &l.peers[k.peer], handle)
	if err != nil {
		return nil, l.failed(k, t, "connect", err)
	}
	l.sends[k] = s
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
