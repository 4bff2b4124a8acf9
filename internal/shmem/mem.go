// Package shmem is memory that several ranks see: goroutines of one process or
// processes of one machine. Words in it are read and written only through the
// atomic accessors here; payload moves by address, ordered by those words
// (payload before flag, flag before payload).
package shmem

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/goccl/goccl/internal/release"
)

// Mem is a span of shared memory. It is a value. A Mem keeps memory of the Go
// heap alive; whoever made a segment keeps it mapped while a Mem over it is in
// use.
type Mem struct {
	base unsafe.Pointer
	n    int
}

// At returns the span of n bytes at addr. addr must be a multiple of 8 for Word,
// Put and Get, and memory of the Go heap must be reachable by other means during
// the call.
func At(addr uintptr, n int) Mem { return Mem{base: *(*unsafe.Pointer)(unsafe.Pointer(&addr)), n: n} }

// Addr returns the address of byte off.
func (m Mem) Addr(off int) uintptr { return uintptr(m.base) + uintptr(off) }

// Len returns the length in bytes.
func (m Mem) Len() int { return m.n }

// Slice returns the span [off, off+n). It panics when that is not inside m:
// offsets are computed by this side, never taken from a peer unchecked.
func (m Mem) Slice(off, n int) Mem {
	if off < 0 || n < 0 || off > m.n-n {
		panic(fmt.Sprintf("shmem: slice [%d:+%d] of %d bytes", off, n, m.n)) // panic: programmer error, see doc
	}
	return Mem{base: unsafe.Add(m.base, off), n: n}
}

// Word returns the 8-byte word at off, which must be a multiple of 8 inside m.
func (m Mem) Word(off int) *atomic.Uint64 {
	if off < 0 || off > m.n-8 || off&7 != 0 {
		badWord(off, m.n)
	}
	return (*atomic.Uint64)(unsafe.Add(m.base, off))
}

// Publish writes v at off after everything that was written before it: what a
// peer sees that has loaded v atomically is whole. It does not wait until peers
// can see it, as an atomic store does; a load that follows may be done before. off
// is as for Word.
func (m Mem) Publish(off int, v uint64) { release.Store(m.Word(off), v) }

// Put writes v at off without an order of its own: it is payload, and the word
// that is stored after it publishes it. off is as for Word.
func (m Mem) Put(off int, v uint64) { *plain(m.Word(off)) = v }

// Get reads the 8 bytes at off as payload: after the load of the word that
// publishes them. off is as for Word.
func (m Mem) Get(off int) uint64 { return *plain(m.Word(off)) }

func plain(w *atomic.Uint64) *uint64 { return (*uint64)(unsafe.Pointer(w)) }

// badWord stands apart so that Word is small enough to be inlined.
func badWord(off, n int) {
	panic(fmt.Sprintf("shmem: word at %d of %d bytes", off, n)) // panic: programmer error, see doc
}

// Bytes returns the span as a slice. It does not keep a segment mapped.
func (m Mem) Bytes() []byte {
	if m.n == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(m.base), m.n)
}
