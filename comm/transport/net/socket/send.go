package socket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/transport"
	"github.com/goccl/goccl/internal/shmem"
	"github.com/goccl/goccl/internal/spin"
)

// sendSide is the sending side: its pump writes the slots of the FIFO to the
// socket, each with its header in one call and without a copy. While the pump is
// parked, a post of a small slot is written at once by the executor (inline.go).
type sendSide struct {
	owner  *Transport
	conn   transport.Conn
	to     *transport.Peer
	socket net.Conn

	fifo  *transport.Send // the executor's end
	pump  *transport.Recv // the pump's end
	frame frame           // what is being written; belongs to who has the turn
	turn  turn            // whose turn it is to write: the pump's or the executor's
	rung  chan struct{}   // a post or Close while the pump slept
	idle  chan struct{}   // a frame has left while Flush waits
	fail  failure

	flushing atomic.Bool
	closing  atomic.Bool   // Close has begun: send the rest and a goodbye
	cut      chan struct{} // closed by abort: send nothing more
	ended    chan struct{} // closed when the pump has ended
	wait     sync.WaitGroup
	once     sync.Once
}

var _ transport.SendSide = (*sendSide)(nil)

func newSendSide(t *Transport, c transport.Conn, to *transport.Peer, socket net.Conn) (*sendSide, error) {
	mem, err := shmem.Private(c.FIFO.Bytes())
	if err != nil {
		return nil, err
	}
	s := &sendSide{owner: t, conn: c, to: to, socket: socket,
		rung: make(chan struct{}, 1), idle: make(chan struct{}, 1), cut: make(chan struct{}), ended: make(chan struct{})}
	s.fifo = transport.NewSend(mem, c.FIFO, s.ring)
	s.pump = transport.NewRecv(mem, c.FIFO, nil)
	s.turn.init(s)
	s.wait.Go(s.send)
	s.wait.Go(s.watch)
	return s, nil
}

// ring runs after a post while the pump sleeps.
func (s *sendSide) ring() {
	if s.turn.write() {
		return
	}
	s.pump.Bell().Store(0)
	signal(s.rung)
}

func (s *sendSide) FIFO() *transport.Send { return s.fifo }

func (s *sendSide) err(cause error) error {
	return describe("", s.conn.Src, s.conn, s.to, s.socket.RemoteAddr().String(), cause)
}

func (s *sendSide) Err() error {
	if s.closing.Load() {
		return s.err(goccl.ErrClosed)
	}
	if b := s.fail.first.Load(); b != nil {
		return s.err(b.err)
	}
	return nil
}

// broke records the end of the connection and wakes whoever waits for it.
func (s *sendSide) broke(err error) {
	s.fail.set(err, 0)
	spin.Wake(s.fifo.CreditBell())
	signal(s.idle)
}

// send is the pump.
func (s *sendSide) send() {
	defer close(s.ended)
	for s.await() {
		s.frame.load(s.pump)
		if err := s.frame.writeTo(s.socket); err != nil {
			s.broke(lost(err))
			return
		}
		s.done()
	}
	select {
	case <-s.cut:
	default:
		s.farewell()
	}
}

// done gives the slot of a frame that has left back to the executor.
func (s *sendSide) done() {
	s.pump.Release()
	if s.flushing.Load() {
		signal(s.idle)
	}
}

// await waits for a slot to send; false: there will be no more.
func (s *sendSide) await() bool {
	for {
		select {
		case <-s.cut:
			return false
		default:
		}
		if s.pump.Ready() {
			return true
		}
		if s.closing.Load() {
			return s.pump.Ready() // posted before Close began
		}
		s.pump.Bell().Store(1)
		if s.pump.Ready() {
			return true
		}
		for s.turn.park(); ; {
			select {
			case <-s.rung:
			case <-s.cut:
				return false
			}
			if s.turn.take() {
				break
			}
		}
	}
}

// farewell ends the stream, so that the receiver tells it from a lost process.
func (s *sendSide) farewell() {
	var b [frameBytes]byte
	header{length: goodbye, step: s.pump.Step()}.put(b[:])
	_, err := s.socket.Write(b[:])
	if half, ok := s.socket.(interface{ CloseWrite() error }); ok && err == nil {
		err = half.CloseWrite()
	}
	if err != nil {
		s.broke(lost(err))
	}
}

// watch reads what never comes, to see the receiver go.
func (s *sendSide) watch() {
	var b [1]byte
	_, err := s.socket.Read(b[:])
	switch {
	case err == nil:
		err = fmt.Errorf("%w: the receiver sent data", goccl.ErrMismatch)
	case errors.Is(err, io.EOF):
		err = errLeft
	case errors.Is(err, net.ErrClosed):
		return
	default:
		err = lost(err)
	}
	s.broke(err)
}

// Flush waits until the kernel has all that was posted. A receiver that has all it
// needs may close before the pump has seen its last write succeed, so only the end
// of the pump is a reason to give up.
func (s *sendSide) Flush(ctx context.Context) error {
	s.flushing.Store(true)
	defer s.flushing.Store(false)
	for !s.fifo.Drained() {
		select {
		case <-s.idle:
		case <-s.ended:
			if s.fifo.Drained() {
				return nil
			}
			if err := s.Err(); err != nil {
				return err
			}
			return s.err(goccl.ErrClosed)
		case <-ctx.Done():
			return s.err(fmt.Errorf("%w: posted data has not left: %w", goccl.ErrTimeout, context.Cause(ctx)))
		}
	}
	return nil
}

// Close sends what has been posted and a goodbye, for at most the configured
// time, and reports goccl.ErrTimeout when a peer that still lives did not take it.
func (s *sendSide) Close() error {
	if !s.closing.CompareAndSwap(false, true) {
		return nil
	}
	late := s.socket.SetWriteDeadline(time.Now().Add(s.owner.config.CloseTimeout))
	if late == nil {
		signal(s.rung)
		<-s.ended
	}
	var err error
	if b := s.fail.first.Load(); !s.fifo.Drained() && (b == nil || errors.Is(b.err, os.ErrDeadlineExceeded)) {
		err = s.err(fmt.Errorf("%w: posted data has not left", goccl.ErrTimeout))
	}
	s.abort()
	s.owner.forget(s, token{})
	return err
}

func (s *sendSide) abort() {
	s.closing.Store(true)
	s.once.Do(func() {
		close(s.cut)
		s.socket.Close()
	})
	s.wait.Wait()
}
