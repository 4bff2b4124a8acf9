package processgroup

import (
	"sync/atomic"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/internal/release"
)

// Op is one operation. The group owns and reuses it; a Backend reads the
// exported fields between Start and the end of the operation and writes only
// Impl. Ranks are ranks of the group.
//
// What an Op means is decided in this order: with Parts it is all of them as one
// operation; with Batch it is these transfers; else it is Coll.
//
// In place: Dst and Src are the same buffer for AllReduce, Reduce on the root,
// and Broadcast. Reduce has no Dst on the other ranks. The own part of AllGather
// and ReduceScatter may lie where it belongs in the larger buffer.
type Op struct {
	Coll  goccl.Collective // SendRecv for Send, Recv and batches; of a Coalesce, that of its first part
	Redop goccl.ReduceOp
	Root  int    // root; the peer for Send and Recv; -1 where there is neither
	Send  bool   // this rank sends; with Coll SendRecv only
	Tag   uint32 // of Send and Recv; both sides must give the same

	Src, Dst device.Buffer
	SrcList  []device.Buffer // Scatter, on the root
	DstList  []device.Buffer // AllGather in its list form; Gather, on the root

	SendCounts, RecvCounts []int // AllToAllV, elements by rank; empty for AllToAll

	Batch []P2P // BatchSendRecv, or a Coalesce of untagged sends and receives only
	Parts []*Op // Coalesce of anything else

	Stream device.Stream // nil on host
	Label  string

	// Seq counts the collectives of the group from 1 and is the same on all
	// ranks. Operations that only send and receive count apart, on this rank.
	Seq uint64

	// Impl is the backend's own state for this Op. Attach sets it once.
	Impl any

	life life
}

// P2P is one transfer of a batch: Buf goes to Peer or, with Recv, comes from it.
type P2P struct {
	Buf  device.Buffer
	Peer int
	Recv bool
}

type state uint8

// The states of an Op.
const (
	opBuilding state = iota // inside Coalesce: not started
	opStarted
	opEnded // err is set, the buffers are the user's again
)

// life is what the group keeps about an Op: its generation, who holds it, and
// where it stands. core.mu guards it but for began.
type life struct {
	gen uint64 // of the operation; handles of other generations are old
	// holds counts the group, until the operation has ended, and each Wait or Test
	// under way. An Op that nobody holds is free.
	holds int
	state state
	began atomic.Uint64 // 0: not yet; see Began

	core *core
	err  error // how it ended; valid once state is opEnded
	// startErr is why the backend did not take it; the waiter reports it.
	startErr error

	queued int64         // nanoseconds after core.base; 0: still within Start
	done   chan struct{} // made by Work.Done

	next, prev *Op // in flight, or next in the free list
}

// choice is how an operation runs, packed: 3 bits of protocol, 5 of algorithm and
// 7 of channels, of which more than 127 count as 127.
type choice uint16

func newChoice(a goccl.Algorithm, p goccl.Protocol, channels int) choice {
	return choice(min(max(channels, 0), 127)<<8 | int(a&31)<<3 | int(p&7))
}

func (c choice) algorithm() goccl.Algorithm { return goccl.Algorithm(c >> 3 & 31) }
func (c choice) protocol() goccl.Protocol   { return goccl.Protocol(c & 7) }
func (c choice) channels() int              { return int(c >> 8) }

// The parts of life.began: a choice, a bit that is always set, and when, in units
// of 256 ns; 0 stands for the time of the call.
const (
	beganBit  = 1 << 15
	beganTime = 16
	beganUnit = 8
)

// pin holds the Op for a caller whose handle is of generation gen. It fails when
// that generation is over: its operation has ended well, since an Op that failed
// is never used again. core.mu is held.
func (op *Op) pin(gen uint64) bool {
	if op.life.gen != gen || op.life.holds == 0 {
		return false
	}
	op.life.holds++
	return true
}

// unpin ends a hold. The last one frees the Op. core.mu is held.
func (op *Op) unpin() { op.life.core.drop(op, 1) }

// Chose tells the group, within Start, how the operation runs and that its data is
// moving. A backend for which that comes later calls Began.
func (op *Op) Chose(a goccl.Algorithm, p goccl.Protocol, channels int) {
	release.Store(&op.life.began, beganBit|uint64(newChoice(a, p, channels)))
}

// Began tells the group that the backend has begun to move data, and how. It
// never blocks and may be called from any goroutine, with the lock or without, once
// for each operation. A backend that calls neither Began nor Chose leaves these
// columns of the flight recorder empty.
func (op *Op) Began(a goccl.Algorithm, p goccl.Protocol, channels int) {
	word := beganBit | uint64(newChoice(a, p, channels))
	release.Store(&op.life.began, word|uint64(op.life.core.now())>>beganUnit<<beganTime)
}

// beganAt takes began apart: when, in nanoseconds after core.base, and how.
func (op *Op) beganAt() (at int64, how choice) {
	word := op.life.began.Load()
	switch {
	case word == 0:
		return 0, 0
	case word>>beganTime == 0:
		return op.life.queued, choice(word & (beganBit - 1))
	}
	return max(int64(word>>beganTime<<beganUnit), op.life.queued), choice(word & (beganBit - 1))
}

// Name returns what the operation is called in messages: the collective, or
// "send", "recv", "batch".
func (op *Op) Name() string {
	switch {
	case len(op.Parts) > 0:
		return "coalesced " + op.Parts[0].Name()
	case op.Coll != goccl.SendRecv:
		return op.Coll.String()
	case op.Root < 0:
		return "batch"
	case op.Send:
		return "send"
	}
	return "recv"
}

// P2P reports whether the operation only sends and receives, so that ranks other
// than its peers take no part.
func (op *Op) P2P() bool { return op.Coll == goccl.SendRecv }
