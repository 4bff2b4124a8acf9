package exec

import (
	"sync/atomic"

	"github.com/goccl/goccl/comm/plan"
	"github.com/goccl/goccl/internal/shmem"
)

// MaxChannels is the most channels of a Program on the host. Slices of a region
// belong to fixed channels, whatever the number in use.
const MaxChannels = 4

// Layout places the parts of a region: memory that every rank has and all ranks
// map. Each part is written by one rank only and lies on cache lines of its own.
//
//	bell      the word on which this rank sleeps (peers ring it)
//	call      what this rank passes to a window operation, two entries by parity
//	signals   one word for each channel, peer and number (the peer adds)
//	scratch   one slot for each channel, bank and peer (the peer writes)
type Layout struct {
	Ranks     int
	SlotBytes int // payload of a scratch slot, a multiple of 64
}

const (
	line       = 64
	bellOff    = 0
	callOff    = 2 * line
	signalsOff = 4 * line

	slotFlag = 0
	slotMeta = 8
	slotData = 16
)

// ScratchSlot returns the payload of a scratch slot for n ranks: 8 KiB for a few
// ranks, less for many, so that a region stays small.
func ScratchSlot(n int) int {
	return min(max(128<<10/n/line*line, 4*line), 8<<10)
}

func (l Layout) signal(ch, peer, word int) int {
	return signalsOff + ((ch*l.Ranks+peer)*plan.Words+word)*line
}

func (l Layout) stride() int { return (slotData + l.SlotBytes + line - 1) / line * line }

func (l Layout) slot(ch int, bank uint64, peer int) int {
	scratch := signalsOff + MaxChannels*l.Ranks*plan.Words*line
	return scratch + ((ch*plan.Banks+int(bank))*l.Ranks+peer)*l.stride()
}

// Bytes returns the size of a region.
func (l Layout) Bytes() int { return l.slot(MaxChannels, 0, 0) }

// Bell returns the word of the region in m on which its rank sleeps.
func Bell(m shmem.Mem) *atomic.Uint64 { return m.Word(bellOff) }

// Place is where a buffer lies: in which window, and how far from its start.
type Place struct {
	Window uint32
	Off    int64
}

const (
	offBits = 40 // a window is at most a tebibyte
	offMask = 1<<offBits - 1
)

func (p Place) word() uint64           { return uint64(p.Window)<<offBits | uint64(p.Off)&offMask }
func placeOf(w uint64) Place           { return Place{Window: uint32(w >> offBits), Off: int64(w & offMask)} }
func call(parity uint64, word int) int { return callOff + int(parity&1)*line + 8*word }
