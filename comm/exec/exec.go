// Package exec is the host executor: the byte domain of the lane machine. It
// moves payload between user buffers, FIFOs, scratch and windows, and reduces
// it. It never waits: whoever drives a Run decides what to do when it is
// blocked.
package exec

import (
	"sync/atomic"

	"github.com/goccl/goccl/comm/plan"
	"github.com/goccl/goccl/comm/transport"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/internal/shmem"
)

// Windows finds user memory that all ranks map.
type Windows interface {
	// Base returns the address of a peer's part of a window and its length, 0
	// when there is no such window.
	Base(window uint32, peer int) (addr uintptr, n int64)
}

// Links makes the ends of connections. It may wait for peers, bounded.
type Links interface {
	Send(c plan.Conn, channel int) (*transport.Send, error)
	Recv(c plan.Conn, channel int) (*transport.Recv, error)
}

// Config is what an executor works on.
type Config struct {
	Rank, Size int
	Layout     Layout
	Regions    []shmem.Mem // by rank; all of them, or none when the ranks do not map each other
	Bells      []*atomic.Uint64
	Windows    Windows
}

// Exec is the state of one rank of one communicator that outlives operations:
// epochs and signal counts. It belongs to one goroutine at a time.
type Exec struct {
	cfg    Config
	epochs [MaxChannels]uint64
	sigs   [][2]uint64   // by channel, peer and word: added by this rank, taken by this rank
	calls  uint64        // window operations so far
	temp   device.Buffer // scaled input, one block
}

// New returns an executor.
func New(cfg Config) *Exec {
	return &Exec{cfg: cfg, sigs: make([][2]uint64, MaxChannels*cfg.Size*plan.Words),
		temp: device.SliceOf(make([]uint64, blockBytes/8))}
}

// Bound is a Program with its connectors: made once, used for every operation
// with its key.
type Bound struct {
	Prog    *plan.Program
	sends   []*transport.Send // by connector; nil for a receiving one
	recvs   []*transport.Recv
	scratch bool
	window  bool
	loops   bool
	// lastPost is the last instruction that sends anything, in a Program that
	// does not loop.
	lastPost int
	fused    bool // run by stepFused
}

// Bind connects what p needs. It may wait for peers, as Links does.
func Bind(p *plan.Program, links Links) (*Bound, error) {
	b := &Bound{Prog: p, sends: make([]*transport.Send, len(p.Conns)), recvs: make([]*transport.Recv, len(p.Conns)),
		scratch: p.UsesScratch(), window: p.Key.Window == plan.WindowBoth, loops: p.Loops(), lastPost: lastPost(p), fused: fusable(p)}
	// All sending ends before the first receiving one: a receiving end waits until
	// its sender has connected, and the senders must not wait in a circle.
	for _, sends := range []bool{true, false} {
		for ch, row := range p.Rows {
			for i := row.ConnLo; i < row.ConnLo+row.ConnN; i++ {
				if p.Conns[i].Send != sends {
					continue
				}
				var err error
				if sends {
					b.sends[i], err = links.Send(p.Conns[i], ch)
				} else {
					b.recvs[i], err = links.Recv(p.Conns[i], ch)
				}
				if err != nil {
					return nil, err
				}
			}
		}
	}
	return b, nil
}

func lastPost(p *plan.Program) int {
	last := -1
	for pc, in := range p.Code {
		sends := in.Op == plan.SIGNAL
		for _, o := range p.Opnds[in.Dst : int(in.Dst)+int(in.NDst)] {
			sends = sends || o.Kind == plan.FifoSend || o.Kind == plan.PeerScratch
		}
		if sends {
			last = pc
		}
	}
	return last
}

// signal returns the two counts of a signal word.
func (x *Exec) signal(ch int, s *plan.Sig) *[2]uint64 {
	return &x.sigs[(ch*x.cfg.Size+int(s.Peer))*plan.Words+int(s.Word)]
}

// ring wakes a peer that sleeps in this machine's memory.
func (x *Exec) ring(peer int32) {
	if b := x.cfg.Bells; b != nil && b[peer] != nil {
		wake(b[peer])
	}
}
