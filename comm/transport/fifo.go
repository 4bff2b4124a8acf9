package transport

import (
	"fmt"
	"sync/atomic"

	"github.com/goccl/goccl/internal/shmem"
	"github.com/goccl/goccl/internal/spin"
)

// A FIFO is a one-way queue of slots between two ranks, in memory that both
// see. It is the only thing an executor moves data through, whatever the
// transport: for inproc and shm the two ends are the two ranks, for a network
// each rank has a FIFO whose other end is a pump.
//
//	word 0      head: steps the receiver has finished (receiver writes)
//	word 64     bell: non-zero while someone sleeps until a post
//	word 72     credit bell: non-zero while someone sleeps until a release
//	128 + i*stride   slot i: flag, meta, payload
//
// The bells have a line of their own, which nobody writes while nobody sleeps.
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
	fifoBell   = 64
	fifoCredit = 72
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
	header int
	stride int
	slot   int    // offset of the slot of step
	end    int    // offset after the last slot
	step   uint64 // next step to post
	credit uint64 // steps known to be writable: head as last read + Slots
	head   *atomic.Uint64
	bell   *atomic.Uint64
	ring   func() // wakes a pump; nil: the sleeper is a spin.Waiter
}

// NewSend returns the sending end of the FIFO in m, which must be zeroed memory
// of spec.Bytes() that is used from step 0. ring, which may be nil, is called
// after a post when the bell word is set: it wakes whoever sleeps at the other
// end. With nil a post wakes a spin.Waiter whose Word is the bell.
func NewSend(m shmem.Mem, spec FIFOSpec, ring func()) *Send {
	return &Send{mem: m, spec: spec, header: spec.header(), stride: spec.stride(), slot: fifoSlots, end: spec.Bytes(),
		credit: uint64(spec.Slots), head: m.Word(fifoHead), bell: m.Word(fifoBell), ring: ring}
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
func (s *Send) Payload() uintptr { return s.mem.Addr(s.slot + s.header) }

// Post publishes the slot: n payload bytes, already written, of an operation
// with the given signature.
func (s *Send) Post(n int, sig uint32) {
	slot := s.slot
	s.mem.Put(slot+slotMeta, uint64(uint32(n))|uint64(sig)<<32)
	s.step++
	if s.slot += s.stride; s.slot == s.end {
		s.slot = fifoSlots
	}
	if s.ring == nil {
		// A sleeper that this misses, because the bell was read before the flag
		// could be seen, wakes by itself.
		s.mem.Publish(slot+slotFlag, s.step)
		spin.Wake(s.bell)
		return
	}
	s.mem.Word(slot + slotFlag).Store(s.step)
	if s.bell.Load() != 0 {
		s.ring()
	}
}

// Bell returns the word that a receiver sets while it sleeps until a post.
func (s *Send) Bell() *atomic.Uint64 { return s.bell }

// CreditBell returns the word on which this sender may sleep until a release: a
// spin.Waiter's Word. It is only a hint and a sleep on it must have a timeout.
func (s *Send) CreditBell() *atomic.Uint64 { return s.mem.Word(fifoCredit) }

// Recv is the receiving end of a FIFO. It belongs to one goroutine at a time.
type Recv struct {
	mem    shmem.Mem
	spec   FIFOSpec
	header int
	stride int
	slot   int    // offset of the slot of step
	end    int    // offset after the last slot
	step   uint64 // next step to read
	head   *atomic.Uint64
	credit *atomic.Uint64
	freed  func() // tells a pump that a slot is free; nil: the sleeper is a spin.Waiter
}

// NewRecv returns the receiving end of the FIFO in m. freed, which may be nil,
// is called after every Release. With nil a release wakes a spin.Waiter whose
// Word is the sender's credit bell.
func NewRecv(m shmem.Mem, spec FIFOSpec, freed func()) *Recv {
	return &Recv{mem: m, spec: spec, header: spec.header(), stride: spec.stride(), slot: fifoSlots, end: spec.Bytes(),
		head: m.Word(fifoHead), credit: m.Word(fifoCredit), freed: freed}
}

// Spec returns the layout.
func (r *Recv) Spec() FIFOSpec { return r.spec }

// Step returns the number of slots released so far.
func (r *Recv) Step() uint64 { return r.step }

// Ready reports whether the next slot has arrived. It never blocks.
func (r *Recv) Ready() bool { return r.mem.Word(r.slot+slotFlag).Load() == r.step+1 }

// Peek returns the address, length and signature of the slot that has arrived.
// Only after Ready. The length is checked against the slot, since a peer wrote it.
func (r *Recv) Peek() (addr uintptr, n int, sig uint32) {
	meta := r.mem.Get(r.slot + slotMeta)
	return r.mem.Addr(r.slot + r.header), int(min(uint32(meta), uint32(r.spec.SlotBytes))), uint32(meta >> 32)
}

// Release gives the slot back to the sender, after all reads of it.
func (r *Recv) Release() {
	r.step++
	if r.slot += r.stride; r.slot == r.end {
		r.slot = fifoSlots
	}
	if r.freed == nil {
		r.mem.Publish(fifoHead, r.step)
		spin.Wake(r.credit)
		return
	}
	r.head.Store(r.step)
	r.freed()
}

// Bell returns the word on which this receiver may sleep until a post: a
// spin.Waiter's Word, or what a sleeping pump sets so that Post rings it.
func (r *Recv) Bell() *atomic.Uint64 { return r.mem.Word(fifoBell) }

// CreditBell returns the word that a sender sets while it sleeps until a
// release.
func (r *Recv) CreditBell() *atomic.Uint64 { return r.credit }

// Drained reports whether the receiver whose FIFO is in m has finished the given
// number of steps. Any goroutine may ask.
func Drained(m shmem.Mem, steps uint64) bool { return m.Word(fifoHead).Load() >= steps }
