package inproc

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/transport"
	"github.com/goccl/goccl/internal/shmem"
)

// piece is memory that the process's ranks find by its key.
type piece struct {
	key    uint64
	handle []byte
	mem    shmem.Mem
	conn   *transport.Conn // nil for a segment
}

// registry holds the pieces of all transports of this process. A key is random,
// so that the handle of another process, met by mistake, finds nothing.
var registry struct {
	mu     sync.Mutex
	pieces map[uint64]*piece
}

const handleBytes = 8

func (t *Transport) publish(bytes int, c *transport.Conn) (*piece, error) {
	mem, err := shmem.Private(bytes)
	if err != nil {
		return nil, err
	}
	handle := make([]byte, handleBytes)
	if _, err := rand.Read(handle); err != nil {
		return nil, err
	}
	p := &piece{key: binary.LittleEndian.Uint64(handle), handle: handle, mem: mem, conn: c}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, goccl.ErrClosed
	}
	t.open[p.key] = p
	registry.mu.Lock()
	defer registry.mu.Unlock()
	if registry.pieces == nil {
		registry.pieces = map[uint64]*piece{}
	}
	registry.pieces[p.key] = p
	return p, nil
}

// withdraw makes the piece unfindable. Who has found it keeps it.
func (t *Transport) withdraw(p *piece) {
	t.mu.Lock()
	delete(t.open, p.key)
	t.mu.Unlock()
	forget(p)
}

func forget(p *piece) {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	delete(registry.pieces, p.key)
}

func (t *Transport) find(handle []byte) (*piece, error) {
	t.mu.Lock()
	closed := t.closed
	t.mu.Unlock()
	if closed {
		return nil, goccl.ErrClosed
	}
	if len(handle) != handleBytes {
		return nil, fmt.Errorf("%w: handle of %d bytes, want %d", goccl.ErrInvalid, len(handle), handleBytes)
	}
	registry.mu.Lock()
	defer registry.mu.Unlock()
	p := registry.pieces[binary.LittleEndian.Uint64(handle)]
	if p == nil {
		return nil, fmt.Errorf("%w: the handle names nothing in this process: its owner has closed it, or is another process", goccl.ErrPeerLost)
	}
	return p, nil
}
