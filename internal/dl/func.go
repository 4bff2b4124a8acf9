package dl

import (
	"fmt"
	"sync"

	"github.com/goccl/goccl"
)

// Func is the address of a C function; 0 is none. Calling 0 panics.
type Func uintptr

// maxFast is the most arguments that Fast takes. cuLaunchKernel has 11.
const maxFast = 16

// frames are argument lists for Fast. The call below lets its arguments escape,
// so a list made there would be on the heap each time.
var frames = sync.Pool{New: func() any { return new([maxFast]uintptr) }}

// Call calls f with integers, addresses and handles, at most 32, and returns its
// result; the upper half of an int result is undefined, see Int32. Go memory whose
// address is converted in the call expression, uintptr(unsafe.Pointer(&x)), stays
// in place and alive until f returns; f must not keep the address. Call blocks
// until f returns and allocates its list of arguments. It panics when f is 0.
//
//go:uintptrescapes
func (f Func) Call(args ...uintptr) uintptr { return call(f, args) }

// Fast is Call without an allocation, for at most 16 arguments. It does not see
// which of them are addresses: of Go memory it takes only what lies on the heap,
// in an object that the caller keeps reachable until f has returned (see Addr). The
// address of a variable on the stack is wrong as soon as the stack grows. It panics
// when f is 0 or there are more arguments.
func (f Func) Fast(args ...uintptr) uintptr {
	frame := frames.Get().(*[maxFast]uintptr)
	if len(args) > len(frame) {
		panic(fmt.Sprintf("dl: %d arguments, Fast takes %d", len(args), maxFast)) // panic: programmer error, see doc
	}
	r := call(f, frame[:copy(frame[:], args)])
	frames.Put(frame)
	return r
}

// Int32 is the result of a C function that returns int or an enumeration.
func Int32(r uintptr) int32 { return int32(uint32(r)) }

// Bind makes *fn, a pointer to a variable of function type, call f. It is for
// functions that take or return structures by value, floating point numbers or
// strings; structures are Go structures of the same layout. Calls of *fn allocate
// and cost about a microsecond. It fails for a signature that cannot be called on
// this processor, and when f is 0.
//
// To pass 128 bytes by value between other arguments:
//
//	type uniqueID [128]byte
//	var initRank func(comm *uintptr, ranks int32, id struct{ b uniqueID }, rank int32) int32
//	err := dl.Bind(&initRank, f)
func Bind(fn any, f Func) (err error) {
	if f == 0 {
		return fmt.Errorf("%w: a function that was not found cannot be called", goccl.ErrUnsupported)
	}
	defer recovered(&err)
	bind(fn, f)
	return nil
}

// Callback returns a C function that calls fn, from any thread. fn takes and
// returns integers and addresses of at most 8 bytes, and returns at most one. It
// must not panic. Callbacks are never freed and a process has 2000: make one for
// each purpose, once, and tell its calls apart by an argument.
func Callback(fn any) (f Func, err error) {
	defer recovered(&err)
	return callback(fn)
}

// recovered turns the panic by which the library below refuses a signature into
// an error.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%w: %v", goccl.ErrInvalid, r)
	}
}
