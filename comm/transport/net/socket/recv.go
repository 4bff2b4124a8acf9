package socket

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/transport"
	"github.com/goccl/goccl/internal/shmem"
	"github.com/goccl/goccl/internal/spin"
)

// recvSide is the receiving side: its pump reads frames from the socket straight
// into the slots of the FIFO.
type recvSide struct {
	owner *Transport
	token token
	conn  transport.Conn
	from  *transport.Peer

	mem   shmem.Mem
	fifo  *transport.Recv // the executor's end
	pump  *transport.Send // the pump's end
	freed chan struct{}   // a slot became free while the pump slept
	fail  failure

	joined chan struct{} // closed when the sender has connected
	done   chan struct{} // closed by Close
	wait   sync.WaitGroup
	closed atomic.Bool

	mu     sync.Mutex
	socket net.Conn // nil before the sender has connected
}

var _ transport.RecvSide = (*recvSide)(nil)

func newRecvSide(t *Transport, c transport.Conn, from *transport.Peer) (*recvSide, error) {
	if err := c.FIFO.Check(); err != nil {
		return nil, err
	}
	k, err := newToken()
	if err != nil {
		return nil, err
	}
	mem, err := shmem.Private(c.FIFO.Bytes())
	if err != nil {
		return nil, err
	}
	r := &recvSide{owner: t, token: k, conn: c, from: from, mem: mem,
		freed: make(chan struct{}, 1), joined: make(chan struct{}), done: make(chan struct{})}
	r.pump = transport.NewSend(mem, c.FIFO, nil)
	r.fifo = transport.NewRecv(mem, c.FIFO, r.release)
	return r, nil
}

// release runs after every release of the executor.
func (r *recvSide) release() {
	if bell := r.pump.CreditBell(); bell.Load() != 0 {
		bell.Store(0)
		signal(r.freed)
	}
}

// signal sets a flag that one goroutine waits for.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (r *recvSide) Handle() []byte { return r.token[:] }

// Early returns the FIFO that the pump will fill.
func (r *recvSide) Early() *transport.Recv { return r.fifo }

func (r *recvSide) FIFO(ctx context.Context) (*transport.Recv, error) {
	select {
	case <-r.done:
		return nil, fail(r.conn.Dst, r.conn, r.from, "", goccl.ErrClosed)
	default:
	}
	select {
	case <-r.joined:
		return r.fifo, nil
	case <-r.done:
		return nil, fail(r.conn.Dst, r.conn, r.from, "", goccl.ErrClosed)
	case <-ctx.Done():
		return nil, fail(r.conn.Dst, r.conn, r.from, "", fmt.Errorf("%w: the sender has not connected: %w", goccl.ErrTimeout, context.Cause(ctx)))
	}
}

func (r *recvSide) err(cause error) error {
	r.mu.Lock()
	socket := r.socket
	r.mu.Unlock()
	addr := ""
	if socket != nil {
		addr = socket.RemoteAddr().String()
	}
	return describe("", r.conn.Dst, r.conn, r.from, addr, cause)
}

// Err reports the end of the connection once every slot before it has been
// released.
func (r *recvSide) Err() error {
	if r.closed.Load() {
		return r.err(goccl.ErrClosed)
	}
	b := r.fail.first.Load()
	if b == nil || !transport.Drained(r.mem, b.after) {
		return nil
	}
	return r.err(b.err)
}

// attach gives the side its connection and starts the pump.
func (r *recvSide) attach(conn net.Conn) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed.Load() {
		return goccl.ErrClosed
	}
	r.socket = conn
	r.wait.Go(func() {
		r.fail.set(r.receive(conn), r.pump.Step())
		conn.Close()
		spin.Wake(r.pump.Bell()) // an executor that sleeps sees the end
	})
	close(r.joined)
	return nil
}

// receive moves frames until the connection ends, and says why it did.
func (r *recvSide) receive(conn net.Conn) error {
	// One read brings a small frame whole. Large payloads pass by the buffer.
	from := bufio.NewReaderSize(conn, 4096)
	var b [frameBytes]byte
	for {
		if _, err := io.ReadFull(from, b[:]); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return errCut
			}
			return lost(err)
		}
		h := readHeader(b[:])
		if err := h.check(r.pump.Step(), r.conn.FIFO.SlotBytes); err != nil {
			return err
		}
		if h.length == goodbye {
			return errGoodbye
		}
		if !r.credit() {
			return goccl.ErrClosed
		}
		n := int(h.length)
		if _, err := io.ReadFull(from, shmem.At(r.pump.Payload(), n).Bytes()); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return errCut
			}
			return lost(err)
		}
		r.pump.Post(n, h.sig)
	}
}

// credit waits for a free slot; false: the side was closed.
func (r *recvSide) credit() bool {
	for !r.pump.Ready() {
		r.pump.CreditBell().Store(1)
		if r.pump.Ready() {
			break
		}
		select {
		case <-r.freed:
		case <-r.done:
			return false
		}
	}
	return true
}

func (r *recvSide) Close() error {
	r.abort()
	r.owner.forget(r, r.token)
	return nil
}

func (r *recvSide) abort() {
	if r.closed.CompareAndSwap(false, true) {
		r.mu.Lock()
		close(r.done)
		if r.socket != nil {
			r.socket.Close()
		}
		r.mu.Unlock()
	}
	r.wait.Wait()
}
