package libnccl

import (
	"fmt"
	"unsafe"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/internal/dl"
)

// Name is what the library is called on Linux.
const Name = "libnccl.so.2"

// HowToGet tells a person where the library comes from.
const HowToGet = "install the pip package nvidia-nccl-cu12 (or -cu13) and set GOCCL_NCCL_LIB to its nvidia/nccl/lib/libnccl.so.2, " +
	"or install the package libnccl2 of NVIDIA's repository for your distribution"

// Library is a loaded libnccl. It stays loaded until the process ends and is safe
// for concurrent use.
type Library struct {
	name    string
	version Version
	fn      *table
	// byValue is ncclCommInitRankConfig, which takes its id by value; nil where
	// the id can be passed by its address.
	byValue func(comm *uintptr, size int32, id struct{ b UniqueID }, rank int32, config uintptr) int32
}

// Open loads the library at path, or with path "" the libnccl.so.2 that the
// dynamic linker finds. The error says what was tried, how to get the library,
// and which versions are taken; it wraps goccl.ErrUnsupported.
func Open(path string) (*Library, error) {
	name := path
	if name == "" {
		name = Name
	}
	so, err := dl.Open(name)
	if err != nil {
		return nil, fmt.Errorf("NCCL: %w; %s", err, HowToGet)
	}
	fn, err := resolve(so)
	if err != nil {
		return nil, fmt.Errorf("NCCL: %w; %s", err, HowToGet)
	}
	l := &Library{name: so.Name(), fn: fn}
	var code int32
	if r := result(fn[symGetVersion].Call(uintptr(unsafe.Pointer(&code)))); r != Success {
		return nil, l.Err("ncclGetVersion", r)
	}
	l.version = Version(code)
	if err := l.version.check(); err != nil {
		return nil, fmt.Errorf("NCCL at %s: %w", l.name, err)
	}
	if err := fn.complete(l.version); err != nil {
		return nil, fmt.Errorf("NCCL at %s: %w", l.name, err)
	}
	if fn[symCommInitRankScalable] == 0 {
		if err := dl.Bind(&l.byValue, fn[symCommInitRankConfig]); err != nil {
			return nil, fmt.Errorf("NCCL at %s: %w", l.name, err)
		}
	}
	return l, nil
}

// Name returns the name under which the library was loaded.
func (l *Library) Name() string { return l.name }

// Version returns the library's version.
func (l *Library) Version() Version { return l.version }

// Windows reports whether buffers can be registered on all ranks together.
func (l *Library) Windows() bool { return l.fn[symCommWindowRegister] != 0 }

// ErrorString returns NCCL's words for a result.
func (l *Library) ErrorString(r Result) string {
	return dl.GoString(l.fn[symGetErrorString].Call(uintptr(r)))
}

// UniqueID makes the name of a communicator, and starts the listener behind it in
// this process.
func (l *Library) UniqueID() (UniqueID, error) {
	id := new(UniqueID)
	r := result(l.fn[symGetUniqueID].Call(uintptr(unsafe.Pointer(id))))
	return *id, l.Err("ncclGetUniqueId", r)
}

// GroupStart opens a group on this thread: calls until GroupEnd become one.
func (l *Library) GroupStart() Result { return result(l.fn[symGroupStart].Fast()) }

// GroupEnd starts what the group collected. It may block until peers have made
// their calls, where connections are missing, unless the communicators do not block.
func (l *Library) GroupEnd() Result { return result(l.fn[symGroupEnd].Fast()) }

// Alloc returns device memory of the current device, of the kind that NCCL can
// register in every way. Its size is rounded up.
func (l *Library) Alloc(bytes int) (uintptr, error) {
	p := new(uintptr)
	r := result(l.fn[symMemAlloc].Call(uintptr(unsafe.Pointer(p)), uintptr(bytes)))
	return *p, l.Err("ncclMemAlloc", r)
}

// Free gives memory of Alloc back. It may wait for the device.
func (l *Library) Free(addr uintptr) error {
	return l.Err("ncclMemFree", result(l.fn[symMemFree].Call(addr)))
}

func result(r uintptr) Result { return Result(dl.Int32(r)) }

// Err is the error of a call that returned r and was on no communicator, nil when
// r is no failure.
func (l *Library) Err(call string, r Result) error {
	if !r.Failed() {
		return nil
	}
	e := &Error{Call: call, Result: r, Text: l.ErrorString(r)}
	e.Detail = dl.GoString(l.fn[symGetLastError].Call(0))
	return e
}

// unsupported is the error of a function that the loaded library lacks.
func (l *Library) unsupported(s symbol) error {
	return fmt.Errorf("%w: %s came with NCCL %v; %v is loaded", goccl.ErrUnsupported, functions[s].name, functions[s].since, l.version)
}
