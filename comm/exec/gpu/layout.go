package gpu

import (
	"fmt"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/plan"
	"github.com/goccl/goccl/device/kernels/abi"
)

// Layout places the parts of a region. A region has one block for each channel and
// peer, whatever the number of channels that a Program uses:
//
//	words      signals, heads and tails of FIFOs, flags of scratch, 64 bytes apart
//	scratch    two banks of LL lines, two of Simple data
//	FIFOs      for collectives and for transfers, of LL lines and of Simple data
//
// Each part of a block is written by that peer only. All ranks use equal Layouts.
type Layout struct {
	Ranks    int
	Channels int // most channels of a Program
	Slots    int // of a FIFO, a power of two
	// Data bytes of a slot, multiples of the protocol's grain. A line of LL holds 8
	// bytes of data in 16 of memory.
	LL, Simple               int
	ScratchLL, ScratchSimple int
}

// The most that a Layout may ask for.
const (
	maxRanks    = 1 << 10
	maxChannels = 255 // as many as a Key can name
	maxSlots    = 64
	maxSlot     = 16 << 20
)

// roundSimple is what the 15 warps of a full block that move, 8 vectors of 16 bytes
// to a thread, take in one round: chunks of it keep all of them busy.
const roundSimple = 15 * 32 * 8 * 16

// DefaultLayout returns the Layout for n ranks on GPUs of so many multiprocessors. One
// channel moves less than a tenth of what a fast link carries, and what others wait for
// is passed on sooner the more there are. So there are as many as run at a time, 128
// at most, in slots that two rounds of all warps fill: 60 MiB are in flight toward the
// peer of two ranks, half of it for up to four, and so on.
func DefaultLayout(n, multiprocessors int) Layout {
	l := Layout{Ranks: n, Channels: 128, Slots: 4, LL: 8 << 10, Simple: 2 * roundSimple, ScratchLL: 8 << 10, ScratchSimple: 8 << 10}
	for left := n; left > 2 && l.Channels > 16; left = (left + 1) / 2 {
		l.Channels /= 2
	}
	l.Channels = min(l.Channels, max(multiprocessors, 1))
	return l
}

// Check reports a Layout that cannot work. The error wraps goccl.ErrInvalid.
func (l Layout) Check() error {
	grainLL, grainSimple := 64, 512
	bad := ""
	switch {
	case l.Ranks < 1 || l.Ranks > maxRanks:
		bad = fmt.Sprintf("%d ranks, at most %d", l.Ranks, maxRanks)
	case l.Channels < 1 || l.Channels > maxChannels:
		bad = fmt.Sprintf("%d channels, at most %d", l.Channels, maxChannels)
	case l.Slots < 1 || l.Slots > maxSlots || l.Slots&(l.Slots-1) != 0:
		bad = fmt.Sprintf("%d slots; want a power of two up to %d", l.Slots, maxSlots)
	case l.LL < grainLL || l.LL%grainLL != 0 || l.ScratchLL < grainLL || l.ScratchLL%grainLL != 0:
		bad = fmt.Sprintf("LL slots of %d and %d bytes; want multiples of %d", l.LL, l.ScratchLL, grainLL)
	case l.Simple < grainSimple || l.Simple%grainSimple != 0 || l.ScratchSimple < grainSimple || l.ScratchSimple%grainSimple != 0:
		bad = fmt.Sprintf("Simple slots of %d and %d bytes; want multiples of %d", l.Simple, l.ScratchSimple, grainSimple)
	case max(l.LL, l.Simple, l.ScratchLL, l.ScratchSimple) > maxSlot:
		bad = fmt.Sprintf("slots of more than %d bytes", maxSlot)
	default:
		return nil
	}
	return fmt.Errorf("%w: a region for %s", goccl.ErrInvalid, bad)
}

// The words of a block, counted from its start.
const (
	signalWord = 0                            // by number
	headWord   = signalWord + plan.Words      // by index and protocol: steps that the peer, which receives, has done
	tailWord   = headWord + indices*protocols // by index: steps that the peer, which sends, has done
	flagWord   = tailWord + indices           // by bank: epoch of the peer's Simple scratch
	callWord   = flagWord + plan.Banks        // places of the peer's buffers
	words      = 16

	indices   = 2 // 0 collectives, 1 transfers
	protocols = 2 // LL, Simple
)

const (
	wordBytes = int(abi.InterpWord)
	lineRatio = 2 // memory of LL to its data
)

func proto(p goccl.Protocol) int {
	if p == goccl.LL {
		return 0
	}
	return 1
}

// slot returns the memory of a FIFO slot.
func (l Layout) slot(p goccl.Protocol) int {
	if p == goccl.LL {
		return lineRatio * l.LL
	}
	return l.Simple
}

// scratchSlot returns the memory of a scratch slot.
func (l Layout) scratchSlot(p goccl.Protocol) int {
	if p == goccl.LL {
		return lineRatio * l.ScratchLL
	}
	return l.ScratchSimple
}

// scratch returns where in a block the first bank of a protocol is.
func (l Layout) scratch(p goccl.Protocol) int {
	at := words * wordBytes
	if p == goccl.LL {
		return at
	}
	return at + plan.Banks*l.scratchSlot(goccl.LL)
}

// fifo returns where in a block the FIFO of an index and protocol is.
func (l Layout) fifo(index int, p goccl.Protocol) int {
	at := l.scratch(goccl.Simple) + plan.Banks*l.scratchSlot(goccl.Simple)
	if p == goccl.LL {
		return at + index*l.Slots*l.slot(goccl.LL)
	}
	return at + indices*l.Slots*l.slot(goccl.LL) + index*l.Slots*l.slot(goccl.Simple)
}

// block returns the bytes of a block.
func (l Layout) block() int { return (l.fifo(indices, goccl.Simple) + 511) / 512 * 512 }

// offset returns where in the region of rank the block of a channel and peer is.
func (l Layout) offset(rank, channel, peer int) int {
	if peer > rank {
		peer--
	}
	return (channel*(l.Ranks-1) + peer) * l.block()
}

// Bytes returns the size of a region.
func (l Layout) Bytes() int { return l.Channels * (l.Ranks - 1) * l.block() }

// MaxChunk returns the most bytes of a chunk in FIFOs of a protocol, and in scratch:
// what a Key may ask for.
func (l Layout) MaxChunk(p goccl.Protocol) (fifo, scratch int) {
	if p == goccl.LL {
		return l.LL, l.ScratchLL
	}
	return l.Simple, l.ScratchSimple
}

// The state of a channel, in words of 8 bytes: the epoch and one unused, then for
// each peer pairs of words, for what its connectors and signals count.
const (
	statePairs = 2*indices*protocols + 2*plan.Words
	stateFirst = 2
)

// stateBytes returns the state of one channel.
func (l Layout) stateBytes() int { return 8 * (stateFirst + 2*statePairs*(l.Ranks-1)) }

// connState and sigState return the first word of a pair.
func (l Layout) connState(rank int, c plan.Conn) int {
	pair := 2 * (int(c.Index)*protocols + proto(c.Proto))
	if !c.Send {
		pair++
	}
	return l.pair(rank, int(c.Peer), pair)
}

func (l Layout) sigState(rank int, s plan.Sig) int {
	pair := 2*indices*protocols + 2*int(s.Word)
	if !s.Out {
		pair++
	}
	return l.pair(rank, int(s.Peer), pair)
}

func (l Layout) pair(rank, peer, pair int) int {
	if peer > rank {
		peer--
	}
	return stateFirst + 2*(peer*statePairs+pair)
}
