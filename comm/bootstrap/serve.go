package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/wire"
)

// arrival is one thing that a connection's goroutine tells the hub's goroutine.
type arrival struct {
	conn   int
	port   *port         // with hello: the new connection
	hello  *wire.Hello   // a valid hello
	accept wire.Accept   // the answer prepared for it
	msg    wire.Message  // a message
	lost   string        // the connection ended
	beat   time.Duration // with hello
}

// port is an identified connection of the hub.
type port struct {
	link *link
	out  *outbox
}

// server is the I/O around a hub for the time of one Serve.
type server struct {
	root    *Root
	hub     *hub
	in      chan arrival
	quit    chan struct{} // closed when the hub takes no more arrivals
	ports   map[int]*port
	pending *pending
	wg      sync.WaitGroup

	mu   sync.Mutex
	note string // why connections could not be accepted, for the final error
}

// Serve runs the hub. It returns when all ranks have left or were lost, when
// joining fails, or after Close. ctx bounds only the joining: when it ends first
// the error matches goccl.ErrTimeout and Error.Missing names the ranks that did not
// come; all others get the same error. After joining failed Serve goes on for up to
// 5 seconds to tell latecomers why, unless Close ends that. Once rank 0 is gone the others have
// RootOptions.Linger to leave. Serve may be called once.
func (r *Root) Serve(ctx context.Context) error {
	if r.started.Swap(true) {
		return goccl.NewError("serve", fmt.Errorf("%w: Serve was called before", goccl.ErrInvalid))
	}
	defer close(r.ended)
	if r.opt.Size == 1 {
		return nil // a world of one has nobody to meet
	}
	s := &server{root: r, hub: newHub(r.opt.Size, r.linger()), in: make(chan arrival), quit: make(chan struct{}),
		ports: map[int]*port{}, pending: newPending(64 + 2*r.opt.Size)}
	s.hub.late = r.late
	s.wg.Go(s.accept)
	s.loop(ctx)
	close(s.quit)
	_ = r.listener.Close() // it accepts no more; nothing else depends on it
	s.pending.closeAll()
	for _, p := range s.ports {
		p.out.finish()
		p.link.setHard(time.Now().Add(flushTime))
	}
	s.wg.Wait()
	return s.hub.err
}

// loop is the hub's goroutine: it owns s.hub and s.ports.
func (s *server) loop(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	defer timer.Stop()
	expired, stop := ctx.Done(), s.root.stop
	for !s.hub.done {
		select {
		case a := <-s.in:
			s.take(a)
		case <-expired:
			expired = nil
			s.hub.joinTimeout(s.expiry(ctx))
		case <-timer.C:
			s.hub.elapsed()
		case <-stop:
			stop = nil
			s.hub.shut(goccl.NewError("serve", fmt.Errorf("%w: the root was closed before %s left", goccl.ErrClosed, goccl.Ranks(s.hub.connected()))))
		}
		s.perform(timer)
	}
}

func (s *server) expiry(ctx context.Context) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	why := "the root's deadline passed"
	if err := context.Cause(ctx); !errors.Is(err, context.DeadlineExceeded) {
		why = "the root gave up: " + err.Error()
	}
	if s.note != "" {
		why += "; it could not accept connections: " + s.note
	}
	return why
}

func (s *server) take(a arrival) {
	switch {
	case a.hello != nil:
		s.ports[a.conn] = a.port
		s.wg.Go(func() { a.port.out.run(a.beat) })
		s.hub.hello(a.conn, *a.hello, a.port.link.address(), a.accept)
	case a.msg != nil:
		s.hub.receive(a.conn, a.msg)
	default:
		s.hub.drop(a.conn, a.lost)
		if p := s.ports[a.conn]; p != nil {
			p.out.finish()
			delete(s.ports, a.conn)
		}
	}
}

// perform carries out the hub's effects. A connection whose queue is full does not
// read: it is dropped, which makes more effects.
func (s *server) perform(timer *time.Timer) {
	for effects := s.hub.take(); len(effects) > 0; effects = s.hub.take() {
		for _, e := range effects {
			var frame []byte
			if e.msg != nil {
				frame = wire.Append(nil, e.msg)
			}
			for _, c := range e.to {
				p := s.ports[c]
				switch {
				case p == nil:
				case e.hangup:
					p.out.finish()
				case !p.out.push(frame):
					s.hub.drop(c, fmt.Sprintf("it does not read: %d MiB wait for it", s.root.queue>>20))
				}
			}
			if e.timer > 0 {
				timer.Reset(e.timer)
			}
		}
	}
}

// accept takes connections until the listener is closed.
func (s *server) accept() {
	for conn := 1; ; conn++ {
		c, err := s.root.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Out of descriptors, mostly: the connection waits in the backlog.
			err = withFileLimit(err)
			s.mu.Lock()
			s.note = err.Error()
			s.mu.Unlock()
			s.root.log.Warn("root cannot accept", "error", err)
			select {
			case <-time.After(50 * time.Millisecond):
			case <-s.quit:
				return
			}
			continue
		}
		l := newLink(c)
		if s.pending.add(l) {
			s.root.log.Warn("too many clients that say nothing; dropped the oldest", "limit", s.pending.limit)
		}
		s.wg.Go(func() { s.serve(conn, l) })
	}
}

// serve is the goroutine of one connection: handshake, then reading until the end.
func (s *server) serve(conn int, l *link) {
	defer l.close()
	hello, banner, err := greet(l, s.root.id, time.Now().Add(handshakeTime))
	s.pending.remove(l)
	if err != nil {
		s.turnAway(l, err)
		return
	}
	beat := s.root.heartbeat(l)
	l.setIdle(lossAfter * beat)
	accept := wire.Accept{MAC: signAccept(s.root.id.secret(), banner, hello), HeartbeatMillis: uint32(beat.Milliseconds())}
	p := &port{link: l, out: newOutbox(l, s.root.queue)}
	if !s.post(arrival{conn: conn, port: p, hello: &hello, accept: accept, beat: beat}) {
		return
	}
	for {
		m, err := l.read(wire.MaxUp)
		if err != nil {
			s.post(arrival{conn: conn, lost: l.why(err)})
			return
		}
		if !s.post(arrival{conn: conn, msg: m}) {
			s.drain(l)
			return
		}
	}
}

// drain reads on while the last words are written: see link.endWriting.
func (s *server) drain(l *link) {
	for {
		if _, _, err := l.readBody(wire.MaxUp); err != nil {
			return
		}
	}
}

// post hands an arrival to the hub and reports whether it took it.
func (s *server) post(a arrival) bool {
	select {
	case s.in <- a:
		return true
	case <-s.quit:
		return false
	}
}

// turnAway ends the connection of a client that is none of our ranks, with a
// reason if it speaks the protocol.
func (s *server) turnAway(l *link, err error) {
	var st *stranger
	if !errors.As(err, &st) {
		s.root.log.Debug("client is no rank", "addr", l.address(), "error", err)
		return
	}
	s.root.log.Warn("client refused", "addr", l.address(), "reason", st.why)
	if l.write(*st.refuse, time.Now().Add(flushTime)) == nil {
		l.endWriting()
		s.drain(l)
	}
}
