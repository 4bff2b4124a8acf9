package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/goccl/goccl"
)

// ServerConfig is the configuration of a TCP store server. The zero value is a
// server for clients that name no job.
type ServerConfig struct {
	// Job is the id of the job, at most 256 bytes. Clients with another id are
	// refused. It is compared, not encrypted: it keeps jobs apart and, if random,
	// strangers out, on a network where nobody listens in.
	Job string

	// Clients is the number of clients that Shutdown waits for, including those
	// that have not come yet.
	Clients int

	// Handshake bounds the time from a connection to its hello; 10 s if 0.
	Handshake time.Duration

	// Logger is told of refused clients and lost connections; nil: no one.
	Logger *slog.Logger
}

// Server is a store over TCP: it holds the data in this process and serves
// clients made by DialTCP. One client that is silent, slow or not a client at
// all does not delay the others.
type Server struct {
	l    net.Listener
	cfg  ServerConfig
	t    *table
	once sync.Once
	done chan struct{}  // closed by Close
	wg   sync.WaitGroup // all goroutines

	mu       sync.Mutex
	conns    map[net.Conn]struct{} // all open ones, also before their hello
	sessions map[*session]struct{}
	joined   int
	changed  chan struct{} // closed and replaced when sessions or joined change
}

// closeWait bounds how long a server that ends gives a client to read the last
// reply, and a client that ends waits for the server's farewell.
const closeWait = time.Second

// ListenTCP opens addr ("127.0.0.1:0", "host:29500") and serves a new store
// there. An address in use is an error at once that names it.
func ListenTCP(ctx context.Context, addr string, cfg ServerConfig) (*Server, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("goccl: store listen: address %s in use: another job or an earlier run has it; choose another port, or 0 for a free one: %w", addr, err)
	}
	if err != nil {
		return nil, fmt.Errorf("goccl: store listen on %s: %w", addr, err)
	}
	s, err := Serve(l, cfg)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return s, nil
}

// Serve serves a new store on l, which may have been handed over open by a
// launcher. The server owns l once Serve has returned without error.
func Serve(l net.Listener, cfg ServerConfig) (*Server, error) {
	if len(cfg.Job) > maxName {
		return nil, fmt.Errorf("goccl: store listen: %w: the job id has %d bytes, the limit is %d", goccl.ErrInvalid, len(cfg.Job), maxName)
	}
	if cfg.Handshake <= 0 {
		cfg.Handshake = 10 * time.Second
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		l:        l,
		cfg:      cfg,
		t:        newTable(),
		done:     make(chan struct{}),
		conns:    make(map[net.Conn]struct{}),
		sessions: make(map[*session]struct{}),
		changed:  make(chan struct{}),
	}
	s.wg.Go(s.accept)
	return s, nil
}

// Addr returns the address that clients dial.
func (s *Server) Addr() net.Addr { return s.l.Addr() }

// Store returns a handle of the same data in this process. It works until it is
// closed, also when the server is.
func (s *Server) Store() *Mem { return newMem(s.t, "tcp server "+s.Addr().String()) }

// accept takes connections until the server closes.
func (s *Server) accept() {
	pause := time.Duration(0)
	for {
		conn, err := s.l.Accept()
		if err == nil {
			pause = 0
			s.wg.Go(func() { s.serve(conn) })
			continue
		}
		select {
		case <-s.done:
			return
		default:
		}
		if errors.Is(err, net.ErrClosed) {
			s.cfg.Logger.Error("store listener was closed by someone else", "addr", s.Addr(), "err", err)
			return
		}
		// Out of open files, most likely: it passes when a client leaves.
		pause = min(max(2*pause, time.Millisecond), time.Second)
		s.cfg.Logger.Warn("store cannot accept a connection; trying again", "addr", s.Addr(), "err", err)
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-s.done:
			t.Stop()
			return
		}
	}
}

// serve owns conn from its acceptance to its end.
func (s *Server) serve(conn net.Conn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(s.cfg.Handshake)) // before Close may shorten it
	if !s.track(conn) {
		return
	}
	defer s.untrack(conn)
	h, err := readHello(conn)
	if err == nil && h.job != s.cfg.Job {
		err = refusal("this store belongs to another job: check the job id, and that the address is that of this job's rank 0")
	}
	if err != nil {
		s.turnAway(conn, h, err)
		return
	}
	if _, err := conn.Write(appendWelcome(nil, replyOK, "")); err != nil {
		s.cfg.Logger.Warn("store client left during the handshake", "client", h.name, "addr", conn.RemoteAddr(), "err", err)
		return
	}
	_ = conn.SetDeadline(time.Time{})
	ss := newSession(s.t, conn, h.name)
	if !s.enter(ss) {
		return
	}
	defer s.leave(ss)
	if err := ss.run(s.done); err != nil {
		s.cfg.Logger.Warn("store client was lost", "client", ss.label(), "err", err)
	}
}

// turnAway tells a client why it is refused. A stranger gets no answer.
func (s *Server) turnAway(conn net.Conn, h hello, err error) {
	s.cfg.Logger.Warn("store refused a connection", "client", h.name, "addr", conn.RemoteAddr(), "err", err)
	var why refusal
	if !errors.As(err, &why) {
		return
	}
	_ = conn.SetDeadline(time.Now().Add(closeWait))
	if _, err := conn.Write(appendWelcome(nil, replyRefused, string(why))); err != nil {
		return
	}
	drain(conn)
}

// drain reads and drops what the peer still sends, up to a limit and the
// connection's deadline. A close with unread bytes would be a reset, and the
// peer would lose what was written to it last.
func drain(conn net.Conn) {
	if half, ok := conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() != nil {
		return
	}
	buf := make([]byte, 4<<10)
	for range 64 {
		if _, err := conn.Read(buf); err != nil {
			return
		}
	}
}

func (s *Server) track(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.done:
		return false
	default:
	}
	s.conns[conn] = struct{}{}
	return true
}

func (s *Server) untrack(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, conn)
}

func (s *Server) enter(ss *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.done:
		return false
	default:
	}
	s.sessions[ss] = struct{}{}
	s.joined++
	s.notify()
	return true
}

func (s *Server) leave(ss *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, ss)
	s.notify()
}

func (s *Server) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Shutdown waits until ServerConfig.Clients clients have come and all clients
// have left, or until ctx ends, and then closes the server. It returns nil if
// they left in time; otherwise the error says how many never came and who is
// still connected.
func (s *Server) Shutdown(ctx context.Context) error {
	for {
		s.mu.Lock()
		changed, joined := s.changed, s.joined
		stay := slices.Collect(maps.Keys(s.sessions))
		s.mu.Unlock()
		if joined >= s.cfg.Clients && len(stay) == 0 {
			return s.Close()
		}
		select {
		case <-changed:
			continue
		case <-s.done:
			return s.Close()
		case <-ctx.Done():
		}
		e := goccl.NewError("store shutdown", ended(ctx))
		e.Transport = "tcp server " + s.Addr().String()
		e.Hint = fmt.Sprintf("%d of %d clients came; still connected: %s", joined, s.cfg.Clients, labels(stay))
		return errors.Join(e, s.Close())
	}
}

func labels(ss []*session) string {
	if len(ss) == 0 {
		return "none"
	}
	names := make([]string, len(ss))
	for i, s := range ss {
		names[i] = s.label()
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// Close ends the server at once: clients that wait get an error, a reply on its
// way has a second to arrive. It waits for all goroutines of the server.
func (s *Server) Close() (err error) {
	s.once.Do(func() {
		s.mu.Lock()
		close(s.done)
		for conn := range s.conns {
			_ = conn.SetReadDeadline(time.Now()) // ends handshakes and sessions
			_ = conn.SetWriteDeadline(time.Now().Add(closeWait))
		}
		s.mu.Unlock()
		err = s.l.Close()
	})
	s.wg.Wait()
	return err
}
