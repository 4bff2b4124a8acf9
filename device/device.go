// Package device is memory and streams. It knows no ranks.
//
// The currency of the whole library is the value Buffer: a typed contiguous
// span of memory on some device. A framework with tensors of its own makes one
// from an address and a count; a Go program makes one from a slice.
package device

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/goccl/goccl"
)

// Kind is a class of devices.
type Kind uint8

// The kinds. Host is the zero value: memory that the CPU reads and writes.
const (
	Host Kind = iota
	CUDA
)

// String returns "host" or "cuda".
func (k Kind) String() string {
	switch k {
	case Host:
		return "host"
	case CUDA:
		return "cuda"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// ID names one device of this process.
type ID struct {
	Kind  Kind
	Index int
}

// String returns "host" or, for example, "cuda:1".
func (id ID) String() string {
	if id.Kind == Host {
		return "host"
	}
	return fmt.Sprintf("%s:%d", id.Kind, id.Index)
}

// Buffer is a typed contiguous span of memory: a value, copied freely. Owner
// keeps the memory alive; whoever starts an operation holds the Buffer until
// the operation has ended. A Buffer of Count 0 may have any address.
type Buffer struct {
	Addr   uintptr
	Count  int
	DType  goccl.DType
	Device ID
	Owner  any
}

// SliceOf returns the buffer of a slice. It does not allocate: Owner is the
// pointer to the first element, which an interface holds without boxing.
func SliceOf[T goccl.Number](s []T) Buffer {
	p := unsafe.SliceData(s)
	return Buffer{Addr: uintptr(unsafe.Pointer(p)), Count: len(s), DType: goccl.DTypeOf[T](), Owner: p}
}

// FromPointer returns a buffer over n elements of memory that another framework
// owns. owner, which may be nil for memory outside the Go heap, is kept
// reachable as long as the Buffer is.
func FromPointer(addr uintptr, n int, d goccl.DType, id ID, owner any) Buffer {
	return Buffer{Addr: addr, Count: n, DType: d, Device: id, Owner: owner}
}

// Bytes returns the length in bytes.
func (b Buffer) Bytes() int { return b.Count * b.DType.Size() }

// Slice returns elements [i, j) of b. It panics when the bounds are wrong, as a
// slice expression does.
func (b Buffer) Slice(i, j int) Buffer {
	if i < 0 || j < i || j > b.Count {
		panic(fmt.Sprintf("device: slice [%d:%d] of a buffer of %d elements", i, j, b.Count))
	}
	b.Addr += uintptr(i * b.DType.Size())
	b.Count = j - i
	return b
}

// Overlaps reports whether b and c share at least one byte.
func (b Buffer) Overlaps(c Buffer) bool {
	if b.Device != c.Device || b.Bytes() == 0 || c.Bytes() == 0 {
		return false
	}
	return b.Addr < c.Addr+uintptr(c.Bytes()) && c.Addr < b.Addr+uintptr(b.Bytes())
}

// Check reports why b cannot be used: an invalid type, a negative count, a nil
// address with elements behind it, or an address that is not a multiple of the
// element size.
func (b Buffer) Check() error {
	switch {
	case !b.DType.Valid():
		return fmt.Errorf("%w: buffer has no element type (%v); make it with device.SliceOf or device.FromPointer", goccl.ErrInvalid, b.DType)
	case b.Count < 0:
		return fmt.Errorf("%w: buffer of %d elements", goccl.ErrInvalid, b.Count)
	case b.Count > 0 && b.Addr == 0:
		return fmt.Errorf("%w: buffer of %d %v elements at address 0", goccl.ErrInvalid, b.Count, b.DType)
	case b.Count > 0 && b.Addr%uintptr(b.DType.Size()) != 0:
		return fmt.Errorf("%w: buffer of %v at %#x is not aligned to %d bytes", goccl.ErrInvalid, b.DType, b.Addr, b.DType.Size())
	}
	return nil
}

// Caps says what a device can do through this package. A test holds every bit
// against behaviour.
type Caps struct {
	PeerMap      bool // memory can be mapped by another process on this machine
	StreamMemOps bool // a stream can wait for and write a word
	Graphs       bool // work can be captured and replayed
	Multicast    bool // one store can reach the memory of several devices
	ComputeCap   int  // 90 for sm_90; 0 on host
}

// Device makes memory and streams. Its methods are safe for concurrent use.
type Device interface {
	ID() ID
	Caps() Caps
	// Alloc returns zeroed memory of at least the given bytes, which must be more
	// than none, aligned to 256 bytes. It may wait for the device.
	Alloc(bytes int) (Memory, error)
	// NewStream returns a stream; a lower prio is served first, 0 is ordinary, and
	// what the device cannot tell apart it takes as the nearest that it can.
	NewStream(prio int) (Stream, error)
	// Close frees what the device holds. While memory or streams are left it is
	// refused and changes nothing. It is idempotent; all else then fails with
	// goccl.ErrClosed.
	Close() error
}

// Memory is an allocation. Free is idempotent; work that uses the memory must have
// ended, and Free may wait for the device.
type Memory interface {
	Addr() uintptr
	Bytes() int
	Free() error
}

// Stream is a queue of work in order. Its methods are safe for concurrent use,
// except that nothing may be called while or after Close runs.
type Stream interface {
	// Record returns an event that is done when all work queued so far is. Whoever
	// gets it calls Release when it is no longer needed.
	Record() (Event, error)
	// WaitEvent makes later work wait for e, of any stream or device of the same
	// kind; the host does not wait.
	WaitEvent(e Event) error
	// Sync blocks until all work queued so far is done or ctx ends, and then
	// returns an error that wraps the cause of ctx.
	Sync(ctx context.Context) error
	// Handle is the native handle, 0 on host.
	Handle() uintptr
	// Close lets queued work finish and does not wait for it. It is idempotent.
	Close() error
}

// Event is a point in a stream.
type Event interface {
	// Done reports whether the event is done; it does not block. An error means
	// that work before it failed.
	Done() (bool, error)
	// Wait blocks the host until the event is done or ctx ends, and then returns an
	// error that wraps the cause of ctx.
	Wait(ctx context.Context) error
	// Release gives the event back; streams that were told to wait for it still do.
	// It must not be used afterwards.
	Release()
}

// Copier is a Stream that moves memory.
type Copier interface {
	// Copy queues a copy of bytes from src to dst, memory of the stream's device, of
	// another of the same kind, or of the host. Both must stay until it is done.
	// Host memory that is not pinned may make the call wait.
	Copy(dst, src uintptr, bytes int) error
}

// Filler is a Stream that fills memory of its device.
type Filler interface {
	// Fill queues setting bytes of memory at dst to v. It must stay until it is done.
	Fill(dst uintptr, v byte, bytes int) error
}

// HostBytes returns the memory of a host buffer as bytes, nil for an empty one or
// one of another device. The slice does not keep the memory alive: b.Owner does.
func HostBytes(b Buffer) []byte {
	if b.Device.Kind != Host || b.Bytes() == 0 {
		return nil
	}
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&b.Addr)), b.Bytes())
}

// View returns the elements of a host buffer as a slice of their Go type, nil for
// an empty buffer. It panics when T is not the buffer's type or the buffer is not
// in host memory. The slice does not keep the memory alive: b.Owner does.
func View[T goccl.Number](b Buffer) []T {
	if goccl.DTypeOf[T]() != b.DType || b.Device.Kind != Host {
		panic(fmt.Sprintf("device: a buffer of %v on %v viewed as %v", b.DType, b.Device, goccl.DTypeOf[T]()))
	}
	if b.Count == 0 {
		return nil
	}
	return unsafe.Slice(*(**T)(unsafe.Pointer(&b.Addr)), b.Count)
}
