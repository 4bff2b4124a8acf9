package libnccl

import (
	"sync/atomic"
	"unsafe"

	"github.com/goccl/goccl/internal/dl"
)

// Comm is a communicator of NCCL (ncclComm_t), whose device is the one that was
// current when it was made. Its methods return what NCCL returns; Err makes an
// error of it.
type Comm struct {
	lib    *Library
	handle *uintptr // on the heap: NCCL may fill it after Split has returned
	keep   *layout  // the configuration, whose texts NCCL may point to
	state  *int32   // where AsyncError is written
	busy   atomic.Bool
	// out is where NCCL writes the result of the last call in the background: it must
	// live until c is done, also when nobody waits for that.
	out any
}

// Init makes this thread's current device rank of a communicator of size. All
// ranks call it with the same id. With Blocking 0 in cfg it returns InProgress at
// once, and AsyncError says when all ranks have come; else it blocks until they
// have. The Comm is nil when the call itself failed.
func (l *Library) Init(size int, id UniqueID, rank int, cfg Config) (*Comm, Result, error) {
	raw, err := cfg.encode(l.version)
	if err != nil {
		return nil, InvalidArgument, err
	}
	c := newComm(l, raw)
	var r Result
	name := "ncclCommInitRankScalable"
	if l.byValue != nil {
		name = "ncclCommInitRankConfig"
		r = Result(l.byValue(c.handle, int32(size), struct{ b UniqueID }{id}, int32(rank), uintptr(unsafe.Pointer(&raw.words))))
	} else {
		r = result(l.fn[symCommInitRankScalable].Call(uintptr(unsafe.Pointer(c.handle)), uintptr(size), uintptr(rank), 1,
			uintptr(unsafe.Pointer(&id)), uintptr(unsafe.Pointer(&raw.words))))
	}
	if r.Failed() {
		return nil, r, l.Err(name, r)
	}
	return c, r, nil
}

// NoColor is the color of a rank that takes part in a Split without a place in
// any of its communicators.
const NoColor = -1

// Split makes communicators of the ranks of c that give the same color, ordered
// by key and then by their rank in c. All ranks of c call it, while nothing is
// under way on c. With NoColor there is no Comm. If c does not block, Split has only
// begun it, whatever it returned: until AsyncError of c is Success, neither c nor the
// new Comm may be used. Made then says whether there is one.
func (c *Comm) Split(color, key int, cfg Config) (*Comm, error) {
	raw, err := cfg.encode(c.lib.version)
	if err != nil {
		return nil, err
	}
	child := newComm(c.lib, raw)
	c.out = child
	r := result(c.lib.fn[symCommSplit].Call(*c.handle, uintptr(color), uintptr(key), uintptr(unsafe.Pointer(child.handle)),
		uintptr(unsafe.Pointer(&raw.words))))
	if r.Failed() {
		return nil, c.Err("ncclCommSplit", r)
	}
	return child, nil
}

func newComm(l *Library, raw *layout) *Comm {
	return &Comm{lib: l, handle: new(uintptr), keep: raw, state: new(int32)}
}

// Library returns the library that made c.
func (c *Comm) Library() *Library { return c.lib }

// Made reports whether a Split has given c its communicator.
func (c *Comm) Made() bool { return atomic.LoadUintptr(c.handle) != 0 }

// AsyncError returns what c is doing: Success, InProgress, or how it failed in the
// background. It never blocks and may be called while another thread is in a call
// on c; a second caller at the same time is told InProgress.
func (c *Comm) AsyncError() Result {
	if !c.busy.CompareAndSwap(false, true) {
		return InProgress
	}
	defer c.busy.Store(false)
	if r := result(c.lib.fn[symCommGetAsyncError].Fast(*c.handle, uintptr(unsafe.Pointer(c.state)))); r != Success {
		return r
	}
	return Result(*c.state)
}

// Err is the error of a call on c that returned r, nil when r is no failure.
func (c *Comm) Err(call string, r Result) error {
	if !r.Failed() {
		return nil
	}
	return &Error{Call: call, Result: r, Text: c.lib.ErrorString(r), Detail: dl.GoString(c.lib.fn[symGetLastError].Call(*c.handle))}
}

// Count returns the number of ranks.
func (c *Comm) Count() (int, error) { return c.number(symCommCount) }

// Rank returns the rank that NCCL gave this one.
func (c *Comm) Rank() (int, error) { return c.number(symCommUserRank) }

// Device returns the number of the CUDA device.
func (c *Comm) Device() (int, error) { return c.number(symCommCuDevice) }

func (c *Comm) number(s symbol) (int, error) {
	n := new(int32)
	r := result(c.lib.fn[s].Call(*c.handle, uintptr(unsafe.Pointer(n))))
	return int(*n), c.Err(functions[s].name, r)
}

// Finalize flushes what is under way. On a communicator that does not block it
// returns InProgress, and AsyncError says when it is done.
func (c *Comm) Finalize() Result { return result(c.lib.fn[symCommFinalize].Fast(*c.handle)) }

// Destroy frees c, which must not be used again. It blocks until other ranks of
// this machine destroy theirs, unless Finalize has ended before.
func (c *Comm) Destroy() Result { return result(c.lib.fn[symCommDestroy].Fast(*c.handle)) }

// Abort ends what is under way on the device and in the background and frees c,
// which must not be used again. No other thread may be in a call on c that can
// block. It may block.
func (c *Comm) Abort() Result { return result(c.lib.fn[symCommAbort].Fast(*c.handle)) }
