package gpu

import (
	"encoding/binary"

	"github.com/goccl/goccl/device/kernels/abi"
)

// Image is a Program as the kernels read it. It is for one rank and for the
// addresses at which that rank maps the regions.
type Image struct {
	Kernel   string // name of the kernel that runs it
	Bytes    []byte
	Channels int
	Simple   bool // else LL
	// What the launch must know of the contents.
	head                      abi.InterpHead
	common, channel           int // bytes
	counters, operands, lanes int // the most of a channel or instruction
	sems                      int
	window                    bool
	fused                     *abi.InterpFused // when a fused kernel runs it; Bytes are not needed then
	state, ranks              int
}

// Sizes of the structures.
var (
	headBytes  = binary.Size(abi.InterpHead{})
	walkBytes  = binary.Size(abi.InterpWalk{})
	placeBytes = binary.Size(abi.InterpPlace{})
	countBytes = binary.Size(abi.InterpCount{})
)

// plan lays out the shared memory of a block of so many warps, in the order of the
// arguments, and returns its size.
func (m *Image) plan(a *abi.InterpArgs, warps int) int {
	a.Head, a.Common, a.Channel, a.StateBytes = m.head, uint32(m.common), uint32(m.channel), uint32(m.state)
	a.Counters, a.Operands = uint32(m.counters), uint32(m.operands)
	at := m.common + m.channel + m.state
	next := func(bytes int) uint32 {
		was := at
		at += bytes
		return uint32(was)
	}
	wins := 0
	if m.window {
		wins = 16 * m.ranks
	}
	a.Wins = next(wins)
	a.Walks = next(warps * walkBytes)
	a.Places = next(warps * m.operands * placeBytes)
	a.Counts = next(warps * m.counters * countBytes)
	a.Sems = next(4 * m.sems)
	a.Dead = next(4)
	return (at + 15) / 16 * 16
}
