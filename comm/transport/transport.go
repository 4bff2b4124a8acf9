// Package transport is how bytes get from one rank to another: the interfaces
// that inproc, shm and net/socket implement, the FIFO that all of them feed, and
// the choice between them, an ordered first match for each connection.
package transport

import (
	"context"
	"errors"
	"fmt"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/internal/shmem"
)

// Peer is what one rank says of itself when a communicator forms: enough to
// decide, without any I/O, which transport reaches it.
type Peer struct {
	Rank    int
	Host    string // name for messages
	HostID  uint64 // equal on two ranks exactly when they can share memory: boot id, IPC, PID and network namespaces, or what the user set
	PID     int
	Process uint64            // random, one per process: tells ranks of one process from two processes with equal pids
	Shm     bool              // this rank can make shared segments
	Addrs   []string          // addresses at which its listener may be reached, best first
	Blob    map[string][]byte // per transport name: what Announce returned
}

// Conn names one connection: a direction of one channel between two ranks.
// Index 0 serves collectives, 1 send and receive.
type Conn struct {
	Channel int
	Index   int
	Proto   goccl.Protocol
	Src     int
	Dst     int
	FIFO    FIFOSpec
}

// String returns the form of a log line: "Channel 00/0 : 0 -> 1".
func (c Conn) String() string {
	return fmt.Sprintf("Channel %02d/%d : %d -> %d", c.Channel, c.Index, c.Src, c.Dst)
}

// Transport makes connections. Implementations are safe for concurrent use.
//
// A connection forms in three steps: the receiver sets its side up and gets a
// handle; the handle travels to the sender (the communicator carries it); the
// sender connects. Every step is bounded by ctx.
type Transport interface {
	// Name is the word for logs and errors: "inproc", "shm", "net/socket".
	Name() string
	// Announce returns what peers must know to reach this rank, put into
	// Peer.Blob; nil when nothing.
	Announce() ([]byte, error)
	// CanConnect reports why a connection from src to dst cannot use this
	// transport; nil when it can. It is pure and gives the same answer on both
	// ranks.
	CanConnect(src, dst *Peer) error
	// SetupRecv makes the receiving side of c on this rank.
	SetupRecv(ctx context.Context, c Conn, from *Peer) (RecvSide, error)
	// ConnectSend makes the sending side of c from the receiver's handle.
	ConnectSend(ctx context.Context, c Conn, to *Peer, handle []byte) (SendSide, error)
	// Close frees everything. Idempotent; waits for its goroutines, bounded.
	Close() error
}

// RecvSide is the receiving side of a connection.
type RecvSide interface {
	// Handle is what the sender needs. Owned by the RecvSide.
	Handle() []byte
	// FIFO blocks until the sender has connected or ctx ends.
	FIFO(ctx context.Context) (*Recv, error)
	// Early returns the receiving end at once: nothing arrives before the sender
	// has connected.
	Early() *Recv
	// Err reports that the connection broke, nil while it works. Never blocks.
	Err() error
	Close() error
}

// SendSide is the sending side of a connection.
type SendSide interface {
	FIFO() *Send
	// Err reports that the connection has ended, nil while it works. Never blocks,
	// from any goroutine.
	Err() error
	// Flush blocks until all that was posted has left this process or ctx ends.
	// Nothing may be posted meanwhile.
	Flush(ctx context.Context) error
	// Close lets what was posted leave, in bounded time, and then tells the
	// receiver. The FIFO must not be used any more. Idempotent.
	Close() error
}

// Mapper is the ability to share memory with a peer: windows, scratch, boards.
// inproc and shm have it, networks do not.
type Mapper interface {
	// Alloc makes a zeroed segment of at least the given bytes, its pages
	// reserved: a lack of memory is an error here and never a fault later.
	Alloc(bytes int) (Segment, error)
	// Map makes the peer's segment visible here.
	Map(ctx context.Context, peer *Peer, handle []byte) (Segment, error)
}

// Segment is shared memory. Close unmaps it here; the memory itself goes with
// its last mapping.
type Segment interface {
	Mem() shmem.Mem
	Handle() []byte
	Close() error
}

// Select returns the first transport that connects src to dst. When none does,
// the error says why each refused.
func Select(ts []Transport, src, dst *Peer) (Transport, error) {
	var why error
	for _, t := range ts {
		err := t.CanConnect(src, dst)
		if err == nil {
			return t, nil
		}
		why = errors.Join(why, fmt.Errorf("%s: %w", t.Name(), err))
	}
	e := goccl.NewError("connect", fmt.Errorf("%w: no transport reaches it: %w", goccl.ErrUnsupported, why))
	e.Rank, e.Peer, e.PeerAddr = src.Rank, dst.Rank, dst.Host
	return nil, e
}
