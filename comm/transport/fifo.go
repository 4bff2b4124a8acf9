package transport

import (
	"fmt"
	"sync/atomic"

	"github.com/goccl/goccl/internal/shmem"
)

// A FIFO is a one-way queue of slots between two ranks, in memory that both
// see. It is the only thing an executor moves data through, whatever the
// transport: for inproc and shm the two ends are the two ranks, for a network
// each rank has a FIFO whose other end is a pump.
//
//	word 0      head: steps the receiver has finished (receiver writes)
//	word 8      bell: non-zero while a pump sleeps on this FIFO (see Send.Bell)
//	128 + i*stride   slot i: flag, meta, payload
//
// flag is step+1 and is written last (release), so that one acquire load tells
// that the payload is whole; step s uses slot s mod Slots. meta holds the
// payload's length (low 32 bits) and the signature of the operation (high 32
// bits). The sender may write step s when head + Slots > s. In the LL form
// flag and meta share a cache line with the payload; in the Simple form the
// payload starts on a line of its own.

// FIFOSpec fixes the layout of a FIFO; both ends compute the same one.
type FIFOSpec struct {
	Slots     int  // at least 2
	SlotBytes int  // payload bytes of a slot, a multiple of 64
	Inline    bool // LL form: flag in the payload's first line
}

const (
	fifoHead   = 0
	fifoBell   = 8
	fifoSlots  = 128
	slotFlag   = 0
	slotMeta   = 8
	inlineHead = 16
	alignHead  = 64
)

func (s FIFOSpec) header() int {
	if s.Inline {
		return inlineHead
	}
	return alignHead
}

func (s FIFOSpec) stride() int { return (s.header() + s.SlotBytes + 63) &^ 63 }

// Bytes returns the memory that a FIFO of this layout takes.
func (s FIFOSpec) Bytes() int { return fifoSlots + s.Slots*s.stride() }

// Check reports a layout that cannot work.
func (s FIFOSpec) Check() error {
	if s.Slots < 2 || s.SlotBytes <= 0 || s.SlotBytes%64 != 0 || s.SlotBytes > 1<<30 {
		return fmt.Errorf("transport: FIFO of %d slots of %d bytes: want at least 2 slots and a multiple of 64", s.Slots, s.SlotBytes)
	}
	return nil
}

// Send is the sending end of a FIFO. It belongs to one goroutine at a time.
type Send struct {
	mem    shmem.Mem
	spec   FIFOSpec
	stride int
	header int
	step   uint64 // next step to post
	credit uint64 // steps known to be writable: head as last read + Slots
	head   *atomic.Uint64
	bell   *atomic.Uint64
	ring   func() // wakes a pump; nil where the peer polls
}

// NewSend returns the sending end of the FIFO in m, which must be zeroed memory
// of spec.Bytes() that is used from step 0. ring, which may be nil, is called
// after a post when the bell word is set: it wakes whoever sleeps at the other
// end.
func NewSend(m shmem.Mem, spec FIFOSpec, ring func()) *Send {
	return &Send{mem: m, spec: spec, stride: spec.stride(), header: spec.header(), credit: uint64(spec.Slots),
		head: m.Word(fifoHead), bell: m.Word(fifoBell), ring: ring}
}

// Spec returns the layout.
func (s *Send) Spec() FIFOSpec { return s.spec }

// Step returns the number of posts so far.
func (s *Send) Step() uint64 { return s.step }

// Ready reports whether a slot is free. It never blocks.
func (s *Send) Ready() bool {
	if s.step < s.credit {
		return true
	}
	s.credit = s.head.Load() + uint64(s.spec.Slots)
	return s.step < s.credit
}

// Drained reports whether the receiver has finished every step posted.
func (s *Send) Drained() bool { return s.head.Load() >= s.step }

// Payload returns the address of the free slot's payload. Only after Ready.
func (s *Send) Payload() uintptr {
	return s.mem.Addr(fifoSlots + int(s.step%uint64(s.spec.Slots))*s.stride + s.header)
}

// Post publishes the slot: n payload bytes, already written, of an operation
// with the given signature.
func (s *Send) Post(n int, sig uint32) {
	off := fifoSlots + int(s.step%uint64(s.spec.Slots))*s.stride
	s.mem.Word(off + slotMeta).Store(uint64(uint32(n)) | uint64(sig)<<32)
	s.step++
	s.mem.Word(off + slotFlag).Store(s.step)
	if s.ring != nil && s.bell.Load() != 0 {
		s.ring()
	}
}

// Recv is the receiving end of a FIFO. It belongs to one goroutine at a time.
type Recv struct {
	mem    shmem.Mem
	spec   FIFOSpec
	stride int
	header int
	step   uint64 // next step to read
	head   *atomic.Uint64
	freed  func() // tells a pump that a slot is free; nil where the peer polls
}

// NewRecv returns the receiving end of the FIFO in m. freed, which may be nil,
// is called after every Release.
func NewRecv(m shmem.Mem, spec FIFOSpec, freed func()) *Recv {
	return &Recv{mem: m, spec: spec, stride: spec.stride(), header: spec.header(), head: m.Word(fifoHead), freed: freed}
}

// Spec returns the layout.
func (r *Recv) Spec() FIFOSpec { return r.spec }

// Step returns the number of slots released so far.
func (r *Recv) Step() uint64 { return r.step }

func (r *Recv) slot() int { return fifoSlots + int(r.step%uint64(r.spec.Slots))*r.stride }

// Ready reports whether the next slot has arrived. It never blocks.
func (r *Recv) Ready() bool { return r.mem.Word(r.slot()+slotFlag).Load() == r.step+1 }

// Peek returns the address, length and signature of the slot that has arrived.
// Only after Ready. The length is checked against the slot, since a peer wrote it.
func (r *Recv) Peek() (addr uintptr, n int, sig uint32) {
	off := r.slot()
	meta := r.mem.Word(off + slotMeta).Load()
	return r.mem.Addr(off + r.header), min(int(uint32(meta)), r.spec.SlotBytes), uint32(meta >> 32)
}

// Release gives the slot back to the sender, after all reads of it.
func (r *Recv) Release() {
	r.step++
	r.head.Store(r.step)
	if r.freed != nil {
		r.freed()
	}
}

// Bell returns the word that a sleeping pump sets so that Post rings it.
func (r *Recv) Bell() *atomic.Uint64 { return r.mem.Word(fifoBell) }
