// Package memlink is a connection in memory that both ranks see: what the inproc
// and shm transports have in common. It is a FIFO behind a control block by
// which the two sides learn that the other has connected or closed.
package memlink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/transport"
	"github.com/goccl/goccl/internal/shmem"
	"github.com/goccl/goccl/internal/spin"
)

// The control block, in front of the FIFO.
const (
	wordSender       = 0  // senderAbsent, senderConnected, or senderClosed + its last step
	wordReceiver     = 8  // 1 once the receiver has closed
	wordBell         = 64 // rung when the sender connects
	controlBytes     = 128
	senderAbsent     = 0
	senderConnected  = 1
	senderClosedBase = 2
)

// Bytes returns the memory that a connection with the FIFO takes.
func Bytes(spec transport.FIFOSpec) int { return controlBytes + spec.Bytes() }

// End is what one side of a connection needs to know of itself and its peer.
type End struct {
	Transport string // name for errors
	Conn      transport.Conn
	Rank      int             // this side
	Peer      *transport.Peer // the other side
	Mem       shmem.Mem       // Bytes of the FIFO, zeroed by whoever made it
	Handle    []byte          // receiving side only
	Local     bool            // the peer is in this process
	Alive     func() error    // reports that the peer's process has ended; may be nil
	Connected func()          // called once when the sender has connected; may be nil
	Free      func() error    // lets go of Mem; called once
}

// err makes the error of this side.
func (e *End) err(op string, cause error) error {
	g := goccl.NewError(op, cause)
	g.Transport, g.Rank, g.Peer, g.Channel = e.Transport, e.Rank, e.Peer.Rank, e.Conn.Channel
	g.PeerAddr = fmt.Sprintf("%s pid %d", e.Peer.Host, e.Peer.PID)
	return g
}

func (e *End) alive() error {
	if e.Alive == nil {
		return nil
	}
	if cause := e.Alive(); cause != nil {
		return e.err("", cause)
	}
	return nil
}

func (e *End) fifo() shmem.Mem { return e.Mem.Slice(controlBytes, e.Mem.Len()-controlBytes) }

var errEnd = fmt.Errorf("%w: it closed the connection: %w", goccl.ErrPeerLost, io.EOF)

// Recv is the receiving side.
type Recv struct {
	end    End
	fifo   *transport.Recv
	sender *atomic.Uint64
	joined atomic.Bool
	closed atomic.Bool
	inUse  sync.RWMutex // read-locked by calls that look at the memory, locked to free it
}

var _ transport.RecvSide = (*Recv)(nil)

// NewRecv returns the receiving side; it owns end.Mem from now on.
func NewRecv(end End) *Recv {
	return &Recv{end: end, fifo: transport.NewRecv(end.fifo(), end.Conn.FIFO, nil), sender: end.Mem.Word(wordSender)}
}

// Handle returns what the transport put into End.
func (r *Recv) Handle() []byte { return r.end.Handle }

// Early returns the FIFO, whose memory exists from the start.
func (r *Recv) Early() *transport.Recv { return r.fifo }

// FIFO waits for the sender.
func (r *Recv) FIFO(ctx context.Context) (*transport.Recv, error) {
	r.inUse.RLock()
	defer r.inUse.RUnlock()
	if r.closed.Load() {
		return nil, r.end.err("connect", goccl.ErrClosed)
	}
	w := spin.Waiter{Policy: spin.Policy{Local: r.end.Local, Oversubscribed: true, Word: r.end.Mem.Word(wordBell)}}
	defer w.Reset()
	for r.sender.Load() == senderAbsent {
		if r.closed.Load() {
			return nil, r.end.err("connect", goccl.ErrClosed)
		}
		if err := r.end.alive(); err != nil {
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			return nil, r.end.err("connect", fmt.Errorf("%w: the sender has not connected: %w", goccl.ErrTimeout, context.Cause(ctx)))
		}
		w.Turn()
	}
	if r.end.Connected != nil && r.joined.CompareAndSwap(false, true) {
		r.end.Connected()
	}
	return r.fifo, nil
}

// Err reports a dead peer at once, and a peer that closed once its last slot has
// been released.
func (r *Recv) Err() error {
	r.inUse.RLock()
	defer r.inUse.RUnlock()
	if r.closed.Load() {
		return r.end.err("", goccl.ErrClosed)
	}
	if v := r.sender.Load(); v >= senderClosedBase {
		if transport.Drained(r.end.fifo(), v-senderClosedBase) {
			return r.end.err("", errEnd)
		}
		return nil
	}
	return r.end.alive()
}

// Close tells the sender and lets go of the memory. A call of FIFO that still
// waits ends with goccl.ErrClosed first. What FIFO returned must not be in use.
func (r *Recv) Close() error {
	if !r.closed.CompareAndSwap(false, true) {
		return nil
	}
	r.end.Mem.Word(wordReceiver).Store(1)
	spin.Wake(r.fifo.CreditBell())
	spin.Wake(r.end.Mem.Word(wordBell))
	r.inUse.Lock()
	defer r.inUse.Unlock()
	return r.end.Free()
}

// Send is the sending side.
type Send struct {
	end      End
	fifo     *transport.Send
	receiver *atomic.Uint64
	closed   atomic.Bool
	inUse    sync.RWMutex // as in Recv
}

var _ transport.SendSide = (*Send)(nil)

// NewSend returns the sending side and tells the receiver; it owns end.Mem from
// now on, also when it fails. A second sender is refused.
func NewSend(end End) (*Send, error) {
	if end.Mem.Len() < Bytes(end.Conn.FIFO) {
		err := fmt.Errorf("%w: memory of %d bytes for a connection of %d: the ranks computed different FIFOs", goccl.ErrMismatch, end.Mem.Len(), Bytes(end.Conn.FIFO))
		return nil, errors.Join(end.err("connect", err), end.Free())
	}
	if !end.Mem.Word(wordSender).CompareAndSwap(senderAbsent, senderConnected) {
		return nil, errors.Join(end.err("connect", fmt.Errorf("%w: the connection has a sender", goccl.ErrInvalid)), end.Free())
	}
	spin.Wake(end.Mem.Word(wordBell))
	return &Send{end: end, fifo: transport.NewSend(end.fifo(), end.Conn.FIFO, nil), receiver: end.Mem.Word(wordReceiver)}, nil
}

// FIFO returns the sending end.
func (s *Send) FIFO() *transport.Send { return s.fifo }

// Err reports a dead peer or one that has closed.
func (s *Send) Err() error {
	s.inUse.RLock()
	defer s.inUse.RUnlock()
	if s.closed.Load() {
		return s.end.err("", goccl.ErrClosed)
	}
	if s.receiver.Load() != 0 {
		return s.end.err("", errEnd)
	}
	return s.end.alive()
}

// Flush returns at once: what has been posted lies in memory that the receiver
// holds, whatever becomes of this process.
func (s *Send) Flush(context.Context) error { return nil }

// Close tells the receiver how many slots there are and lets go of the memory.
// The FIFO must not be in use.
func (s *Send) Close() error {
	if !s.closed.CompareAndSwap(false, true) {
		return nil
	}
	s.end.Mem.Word(wordSender).Store(senderClosedBase + s.fifo.Step())
	spin.Wake(s.fifo.Bell())
	s.inUse.Lock()
	defer s.inUse.Unlock()
	return s.end.Free()
}
