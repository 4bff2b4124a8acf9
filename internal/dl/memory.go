package dl

import (
	"bytes"
	"strings"
	"unsafe"
)

// CString returns s as C wants it: its bytes up to the first NUL, and a NUL. A
// call takes its address as uintptr(unsafe.Pointer(&b[0])).
func CString(s string) []byte {
	if i := strings.IndexByte(s, 0); i >= 0 {
		s = s[:i]
	}
	return append([]byte(s), 0)
}

// longest bounds GoString: no name or message of a C library is longer, and a
// text without an end must not be read for ever.
const longest = 64 << 10

// GoString copies the C string at addr, at most 64 KiB of it. It is "" at 0.
func GoString(addr uintptr) string {
	if addr == 0 {
		return ""
	}
	p := foreign(addr)
	n := 0
	for n < longest && *(*byte)(unsafe.Add(p, n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(p), n))
}

// GoBytes copies n bytes at addr, which C owns.
func GoBytes(addr uintptr, n int) []byte {
	if addr == 0 || n <= 0 {
		return nil
	}
	return bytes.Clone(unsafe.Slice((*byte)(foreign(addr)), n))
}

// Text is the C string in a buffer that a C function filled.
func Text(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}

// Addr returns p, an address converted in the call expression, and so puts what it
// points to on the heap, where it stays in place as long as it is reachable: for
// Fast, and for addresses that are stored in structures for C.
//
//	pos.x = dl.Addr(uintptr(unsafe.Pointer(&buf[0])))
//
//go:uintptrescapes
//go:noinline
func Addr(p uintptr) uintptr { return p }

// foreign makes a pointer of an address that lies outside the Go heap.
func foreign(addr uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&addr)) }
