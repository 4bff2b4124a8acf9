package simd

import (
	"unsafe"

	"github.com/goccl/goccl"
)

// at views n elements at addr as a slice.
func at[T any](addr uintptr, n int) []T {
	return unsafe.Slice((*T)(*(*unsafe.Pointer)(unsafe.Pointer(&addr))), n)
}

// noescape returns the address of the first of src, hidden from escape
// analysis: a call through a function value would otherwise move the caller's
// table of sources to the heap. The kernels do not keep it. It stays a pointer,
// so a stack that moves takes it along.
func noescape(src []uintptr) *uintptr {
	hidden := uintptr(unsafe.Pointer(unsafe.SliceData(src)))
	return *(**uintptr)(unsafe.Pointer(&hidden))
}

// sizes holds the bytes of one element, so that hot paths need no call.
var sizes = func() (s [dtypes]uintptr) {
	for d := range goccl.DType(dtypes) {
		s[d] = uintptr(d.Size())
	}
	return s
}()
