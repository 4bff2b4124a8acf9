package store

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/goccl/goccl"
)

const (
	maxQueued   = 1024             // replies queued before a session stops reading
	maxWaits    = 4096             // gets of one client that may wait at a time
	writeBudget = 30 * time.Second // for a client to take a batch of replies
)

// session serves one client: the goroutine of run reads and executes requests,
// another one writes replies. A get that has to wait costs a map entry.
type session struct {
	t    *table
	conn net.Conn
	name string

	kick chan struct{} // capacity 1: there is something to write
	room chan struct{} // capacity 1: the queue was taken

	mu     sync.Mutex
	queue  net.Buffers
	waits  map[uint32]*waiter
	ending bool // write what is queued, then stop
}

func newSession(t *table, conn net.Conn, name string) *session {
	return &session{
		t:     t,
		conn:  conn,
		name:  name,
		kick:  make(chan struct{}, 1),
		room:  make(chan struct{}, 1),
		waits: make(map[uint32]*waiter),
	}
}

func (s *session) label() string { return fmt.Sprintf("%s at %s", s.name, s.conn.RemoteAddr()) }

// run serves until the client says goodbye (nil), is lost, or the server ends.
func (s *session) run(done <-chan struct{}) error {
	written := make(chan error, 1)
	go func() { written <- s.write() }()

	err := s.read(written)
	select {
	case <-done: // the server ends: the client is told, and this is no loss
		s.reply(0, replyClosing, nil, nil)
		err = nil
	default:
	}
	s.finish(err == nil)
	if werr := <-written; err == nil {
		err = werr
	}
	return err
}

// finish drops the waits and lets the writer end, after what is queued if the
// client still listens.
func (s *session) finish(polite bool) {
	s.mu.Lock()
	s.ending = true
	_ = s.conn.SetWriteDeadline(time.Now().Add(closeWait))
	if !polite {
		s.queue = nil
	}
	waits := s.waits
	s.waits = nil
	s.mu.Unlock()
	for _, w := range waits {
		s.t.forget(w)
	}
	signal(s.kick)
}

// read executes requests. nil means that the client said goodbye.
func (s *session) read(written chan error) error {
	r := bufio.NewReader(s.conn)
	for {
		frame, err := readFrame(r)
		if err != nil {
			return lost(err)
		}
		req, err := parseRequest(frame)
		if err == nil && req.op == opBye {
			s.reply(req.id, replyOK, nil, nil)
			return nil
		}
		if err == nil {
			err = s.execute(req)
		}
		if err != nil {
			s.reply(req.id, replyRefused, []byte(err.Error()), nil)
		}
		for s.full() {
			select {
			case <-s.room:
			case err := <-written: // the writer failed, and run wants to know too
				written <- err
				return lost(err)
			}
		}
	}
}

// execute runs one request and queues its reply, if there is one yet.
func (s *session) execute(req request) error {
	switch req.op {
	case opSet:
		if err := s.t.set(req.key, req.body); err != nil {
			return err
		}
		s.reply(req.id, replyOK, nil, nil)
	case opGet:
		return s.get(req)
	case opCancel:
		s.mu.Lock()
		w := s.waits[req.id]
		delete(s.waits, req.id)
		s.mu.Unlock()
		if w != nil {
			s.t.forget(w)
		}
	case opAdd:
		sum, err := s.t.add(req.key, req.num)
		if err != nil {
			return err
		}
		s.reply(req.id, replyOK, binary.LittleEndian.AppendUint64(nil, uint64(sum)), nil)
	case opCAS:
		cur, swapped, err := s.t.compareAndSwap(req.key, req.old, req.body)
		if err != nil {
			return err
		}
		s.reply(req.id, replyOK, []byte{flag(swapped), flag(cur != nil)}, cur)
	case opDelete:
		s.reply(req.id, replyOK, []byte{flag(s.t.delete(req.key))}, nil)
	}
	return nil
}

// get answers at once or when the key appears.
func (s *session) get(req request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waits) >= maxWaits {
		return refusal(fmt.Sprintf("this client waits for %d keys already", maxWaits))
	}
	if s.waits[req.id] != nil {
		return refusal("two requests have the same id")
	}
	val, w := s.t.get(req.key, func(val []byte) { s.arrived(req.id, val) })
	if w == nil {
		s.enqueue(replyFrame(req.id, replyOK, nil, val), val)
		return nil
	}
	s.waits[req.id] = w
	return nil
}

// arrived answers a get that waited, unless it was given up meanwhile.
func (s *session) arrived(id uint32, val []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waits[id] == nil {
		return
	}
	delete(s.waits, id)
	s.enqueue(replyFrame(id, replyOK, nil, val), val)
}

func (s *session) reply(id uint32, code byte, fixed, val []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enqueue(replyFrame(id, code, fixed, val), val)
}

// enqueue queues a reply; s.mu is held.
func (s *session) enqueue(head, val []byte) {
	s.queue = append(s.queue, head)
	if len(val) > 0 {
		s.queue = append(s.queue, val)
	}
	signal(s.kick)
}

func (s *session) full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue) >= maxQueued
}

// write sends queued replies until finish or an error. The client that does not
// take them in time is cut off, so that what it is owed does not pile up.
func (s *session) write() error {
	for range s.kick {
		s.mu.Lock()
		batch, ending := s.queue, s.ending
		s.queue = nil
		if !ending { // finish has set its own, shorter one
			_ = s.conn.SetWriteDeadline(time.Now().Add(writeBudget))
		}
		s.mu.Unlock()
		signal(s.room)
		if _, err := batch.WriteTo(s.conn); err != nil {
			s.conn.Close() // ends the reader
			return err
		}
		if ending {
			return nil
		}
	}
	return nil
}

// lost describes the end of a connection without goodbye.
func lost(err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: it closed the connection without goodbye", goccl.ErrPeerLost)
	}
	return fmt.Errorf("%w: %w", goccl.ErrPeerLost, err)
}

// signal puts a token into c unless one is there.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}
