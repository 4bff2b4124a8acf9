package bootstrap

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/goccl/goccl/comm/wire"
)

// link is a connection that carries frames. One goroutine reads, one writes (the
// outbox's), any may close.
type link struct {
	conn net.Conn
	in   *bufio.Reader // many small frames for one system call
	head [wire.HeaderSize]byte

	mu   sync.Mutex
	idle time.Duration // longest silence allowed between two reads; 0: any
	hard time.Time     // no read goes on after this; zero: none
}

func newLink(c net.Conn) *link {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetKeepAliveConfig(keepAlive) // a connection without keep-alive still has heartbeats
	}
	l := &link{conn: c}
	l.in = bufio.NewReaderSize(l, readAhead)
	return l
}

// address names the other end: host:port, or "in process".
func (l *link) address() string {
	if a := l.conn.RemoteAddr(); a != nil && a.Network() != "pipe" {
		return a.String()
	}
	return "in process"
}

// remote reports whether the other end is on another machine, where a crash closes
// no socket. Both ends come to the same answer, but only the root's counts.
func (l *link) remote() bool {
	theirs, ok1 := l.conn.RemoteAddr().(*net.TCPAddr)
	ours, ok2 := l.conn.LocalAddr().(*net.TCPAddr)
	return ok1 && ok2 && !theirs.IP.IsLoopback() && !theirs.IP.Equal(ours.IP)
}

// setIdle bounds the silence between two arrivals from now on.
func (l *link) setIdle(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idle = d
	l.arm()
}

// setHard ends all reading at t; the zero time lifts that.
func (l *link) setHard(t time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hard = t
	l.arm()
}

// arm sets the read deadline to the nearer of the two limits. mu is held, so that
// a Read that begins cannot undo a limit set meanwhile.
func (l *link) arm() {
	var t time.Time
	if l.idle > 0 {
		t = time.Now().Add(l.idle)
	}
	if !l.hard.IsZero() && (t.IsZero() || l.hard.Before(t)) {
		t = l.hard
	}
	_ = l.conn.SetReadDeadline(t) // fails only on a closed connection, as the read will
}

// Read makes link an io.Reader in which every arrival counts as a sign of life, so
// that a large frame on a slow network is not mistaken for silence.
func (l *link) Read(b []byte) (int, error) {
	l.mu.Lock()
	l.arm()
	l.mu.Unlock()
	return l.conn.Read(b)
}

// readAhead is the size of a connection's read buffer in bytes; larger frames pass
// it by.
const readAhead = 4 << 10

// lump is how much is allocated ahead of the bytes that fill it.
const lump = 1 << 20

// readBody reads the next frame, whose body may have at most limit bytes.
func (l *link) readBody(limit int) (wire.Kind, []byte, error) {
	if _, err := io.ReadFull(l.in, l.head[:]); err != nil {
		return 0, nil, err
	}
	h, err := wire.ParseHeader(l.head[:], limit)
	if err != nil {
		return 0, nil, err
	}
	if h.Size <= lump {
		body := make([]byte, h.Size)
		_, err = io.ReadFull(l.in, body)
		return h.Kind, body, midFrame(err)
	}
	var buf bytes.Buffer
	_, err = io.CopyN(&buf, l.in, int64(h.Size))
	return h.Kind, buf.Bytes(), midFrame(err)
}

func midFrame(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// read reads and decodes the next message.
func (l *link) read(limit int) (wire.Message, error) {
	k, body, err := l.readBody(limit)
	if err != nil {
		return nil, err
	}
	return wire.Decode(k, body)
}

// write sends one message at once, for the handshake only: afterwards the outbox
// owns the writing side.
func (l *link) write(m wire.Message, deadline time.Time) error {
	if err := l.conn.SetWriteDeadline(deadline); err != nil {
		return err
	}
	if _, err := l.conn.Write(wire.Append(nil, m)); err != nil {
		return err
	}
	return l.conn.SetWriteDeadline(time.Time{})
}

// endWriting says that nothing more will come. Closing outright would make the
// system throw away what the other end has not read yet as soon as anything of
// theirs is still on its way; so the reader goes on for a moment, and closes.
func (l *link) endWriting() {
	half, ok := l.conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		l.close()
		return
	}
	l.setHard(time.Now().Add(flushTime))
}

func (l *link) close() { _ = l.conn.Close() } // nothing is buffered here, so nothing can be lost

// why puts a read error into the words of a person.
func (l *link) why(err error) string {
	var errno syscall.Errno
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.ErrClosedPipe):
		return "the connection was closed"
	case errors.Is(err, os.ErrDeadlineExceeded):
		l.mu.Lock()
		defer l.mu.Unlock()
		return fmt.Sprintf("no sign of life for %v", l.idle)
	case errors.As(err, &errno):
		return errno.Error()
	}
	return err.Error()
}

// scoped gives a link-local IPv6 address each of this host's own interfaces as its
// scope: the sender's scope means nothing here, and without one the connect fails
// with "invalid argument".
func scoped(a netip.Addr, nics []nic) []netip.Addr {
	if !a.Is6() || !a.IsLinkLocalUnicast() {
		return []netip.Addr{a}
	}
	var out []netip.Addr
	for _, n := range nics {
		for _, own := range n.addrs {
			if n.up && !n.loopback && own.Is6() && own.IsLinkLocalUnicast() {
				out = append(out, a.WithZone(n.name))
				break
			}
		}
	}
	return out
}
