package plan

import (
	"fmt"

	"github.com/goccl/goccl"
)

// Window says which user buffers lie in memory that all ranks map. It is agreed
// when the memory is made, and checked between ranks with every operation.
type Window uint8

// The window modes.
const (
	WindowNone Window = iota
	WindowBoth        // input and output: ranks read and write each other's buffers
)

// String returns "none" or "both".
func (w Window) String() string {
	if w == WindowBoth {
		return "both"
	}
	return "none"
}

// Key chooses a Program. Every field is equal on all ranks of an operation.
type Key struct {
	Coll     goccl.Collective
	Algo     goccl.Algorithm
	Proto    goccl.Protocol
	DType    goccl.DType
	Op       goccl.ReduceOp // the kind only, without a scale
	Channels uint8          // at least 1
	Window   Window
	Send     bool   // SendRecv: this rank sends to Root, else it receives from Root
	Root     int32  // root rank, or the peer of a SendRecv
	Chunk    uint32 // most bytes of a chunk, a multiple of the grain
}

// String returns a compact form for logs and goldens.
func (k Key) String() string {
	s := fmt.Sprintf("%v/%v/%v %v", k.Coll, k.Algo, k.Proto, k.DType)
	if k.Coll.Reduces() {
		s += fmt.Sprintf(" %v", k.Op)
	}
	if k.Coll == goccl.SendRecv {
		dir := "recv from"
		if k.Send {
			dir = "send to"
		}
		return s + fmt.Sprintf(" %s %d chunk %d", dir, k.Root, k.Chunk)
	}
	if k.Coll.Rooted() {
		s += fmt.Sprintf(" root %d", k.Root)
	}
	return s + fmt.Sprintf(" channels %d window %v chunk %d", k.Channels, k.Window, k.Chunk)
}
