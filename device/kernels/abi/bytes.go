package abi

import "unsafe"

// Bytes returns the memory of *v, one of this package's structures, as a kernel
// reads it: for the arguments of a launch or a copy to the device. It does not copy;
// the bytes are valid as long as *v is.
func Bytes[T any](v *T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v))
}
