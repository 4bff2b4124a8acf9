package cuda

import (
	"fmt"
	"unsafe"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/internal/dl"
)

// Condition is when a stream that waits for a word goes on.
type Condition uint32

// The conditions, on the word w and the value v of the call.
const (
	AtLeast Condition = iota // w-v is not negative as a signed number, so that counters may wrap
	Equal                    // w == v
	AnyBit                   // w&v != 0
	NoneOf                   // ^(w|v) != 0
)

// Operations of a batch, as the driver numbers them.
const (
	opWait32  = 1
	opWrite32 = 2
	opWait64  = 4
	opWrite64 = 5
)

// WriteValue32 queues writing a word of the device, of a peer, or of pinned
// memory, after all earlier work of the stream can be seen. No kernel runs for it.
func (c Section) WriteValue32(addr uintptr, v uint32) error {
	return c.fast(cuStreamWriteValue32, c.s.handle, addr, uintptr(v), 0)
}

// WriteValue64 is WriteValue32 for 8 bytes.
func (c Section) WriteValue64(addr uintptr, v uint64) error {
	return c.fast(cuStreamWriteValue64, c.s.handle, addr, uintptr(v), 0)
}

// WaitValue32 makes later work of the stream wait until the word meets the
// condition. No kernel runs meanwhile. Only a write ends the wait: whoever is to
// write and dies leaves the stream blocked.
func (c Section) WaitValue32(addr uintptr, v uint32, when Condition) error {
	return c.fast(cuStreamWaitValue32, c.s.handle, addr, uintptr(v), uintptr(when))
}

// WaitValue64 is WaitValue32 for 8 bytes.
func (c Section) WaitValue64(addr uintptr, v uint64, when Condition) error {
	return c.fast(cuStreamWaitValue64, c.s.handle, addr, uintptr(v), uintptr(when))
}

// Batch is a list of waits and writes that is queued in one call, which costs
// about half of what single calls do. They happen in order. It may be queued again
// and again; it belongs to one goroutine at a time.
type Batch struct{ ops []memOp }

// Reset empties the list and keeps its memory.
func (b *Batch) Reset() { b.ops = b.ops[:0] }

// Write32 adds a write.
func (b *Batch) Write32(addr uintptr, v uint32) {
	b.ops = append(b.ops, memOp{op: opWrite32, addr: uint64(addr), value: uint64(v)})
}

// Write64 adds a write.
func (b *Batch) Write64(addr uintptr, v uint64) {
	b.ops = append(b.ops, memOp{op: opWrite64, addr: uint64(addr), value: v})
}

// Wait32 adds a wait.
func (b *Batch) Wait32(addr uintptr, v uint32, when Condition) {
	b.ops = append(b.ops, memOp{op: opWait32, addr: uint64(addr), value: uint64(v), flags: uint32(when)})
}

// Wait64 adds a wait.
func (b *Batch) Wait64(addr uintptr, v uint64, when Condition) {
	b.ops = append(b.ops, memOp{op: opWait64, addr: uint64(addr), value: v, flags: uint32(when)})
}

// maxBatch is the most operations that the driver takes at once.
const maxBatch = 256

// Batch queues the operations of b, 256 at most.
func (c Section) Batch(b *Batch) error {
	switch n := len(b.ops); {
	case n == 0:
		return nil
	case n > maxBatch:
		return c.s.dev.wrap(fmt.Errorf("%w: a batch of %d operations, at most %d", goccl.ErrInvalid, n, maxBatch))
	}
	return c.fast(cuStreamBatchMemOp, c.s.handle, uintptr(len(b.ops)), dl.Addr(uintptr(unsafe.Pointer(&b.ops[0]))), 0)
}
