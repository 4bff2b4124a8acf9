// Package dl loads C libraries and calls them without cgo. It is the only
// foreign function interface of the module: CUDA, NCCL, NVRTC and network
// plugins are reached through it, so that a plain `go build` makes a program
// that uses them where they are installed and says so where they are not.
//
// A program that links this package needs the C library's dynamic linker, even
// when it never opens anything. So nothing on the CPU path imports it, which a
// test keeps.
//
// # Calling
//
// A Func is an address. Call takes integers and addresses and allocates; it keeps
// Go memory in place whose address is taken in the call expression itself:
//
//	var n int32
//	status := dl.Int32(deviceGetCount.Call(uintptr(unsafe.Pointer(&n))))
//
// Fast does not allocate, and does not look after Go memory either: it is for
// handles, integers, and addresses of memory that the caller keeps. Both cost
// about 110 ns over the C function. Functions that take or return structures by
// value or floating point numbers are given a Go function with Bind.
//
// A C function blocks its OS thread, not the others; a goroutine may run on
// another thread after each call, so what a library keeps per thread (a current
// context, an error text) needs runtime.LockOSThread around the calls.
package dl
