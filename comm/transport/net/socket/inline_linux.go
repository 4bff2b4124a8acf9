package socket

import (
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// Whose turn it is to write.
const (
	turnPump     = iota // the pump's: it is awake, or was told to wake
	turnParked          // the executor may take it
	turnExecutor        // the executor's, for one post
)

// inlineBytes bounds what the executor writes itself: waking the pump costs more
// than copying a small frame to the kernel, and less than copying a large one.
const inlineBytes = 16 << 10

// turn lets the executor write a small frame from within its post, without
// blocking, while the pump is parked. That saves a message the hop to another
// goroutine.
type turn struct {
	whose   atomic.Int32
	side    *sendSide
	raw     syscall.RawConn
	attempt func(fd uintptr) bool // writes once; made once, so that a post allocates nothing
	wrote   int
}

func (t *turn) init(s *sendSide) {
	t.side = s
	c, ok := s.socket.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	t.raw = raw
	t.attempt = func(fd uintptr) bool {
		t.wrote, _ = unix.Writev(int(fd), s.frame.parts) // an error shows again when the pump writes
		return true                                      // never wait
	}
}

// park offers the turn to the executor. The pump does this last before it sleeps.
func (t *turn) park() { t.whose.Store(turnParked) }

// take gets the turn back for a pump that was woken; false: the executor is
// writing and will wake it again if there is need.
func (t *turn) take() bool {
	return t.whose.Load() == turnPump || t.whose.CompareAndSwap(turnParked, turnPump)
}

// write sends what is ready and reports true when all of it has left; false: wake
// the pump, which has the turn then. The executor calls it after a post.
func (t *turn) write() bool {
	if t.raw == nil || !t.whose.CompareAndSwap(turnParked, turnExecutor) {
		return false
	}
	s := t.side
	for s.pump.Ready() {
		s.frame.load(s.pump)
		if s.frame.bytes() > inlineBytes {
			t.whose.Store(turnPump)
			return false
		}
		t.wrote = 0
		if err := t.raw.Write(t.attempt); err != nil || t.wrote < s.frame.bytes() {
			s.frame.sent += max(t.wrote, 0)
			t.whose.Store(turnPump)
			return false
		}
		s.frame.sent = 0
		s.done()
	}
	t.whose.Store(turnParked)
	// A pump that was woken meanwhile found the turn taken.
	return !s.closing.Load()
}
