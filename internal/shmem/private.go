package shmem

import (
	"fmt"
	"unsafe"

	"github.com/goccl/goccl"
)

// Alignment of private memory: two cache lines, since cores fetch them in pairs.
const alignment = 128

// Private returns n zeroed bytes that only this process sees, aligned to 128.
// They are on the Go heap, so that the race detector watches them and nothing
// dangles: whatever Mem, slice or pointer is left keeps them alive.
func Private(n int) (Mem, error) {
	if n <= 0 || n > maxBytes {
		return Mem{}, fmt.Errorf("shmem: %d bytes of memory: %w: size out of range", n, goccl.ErrInvalid)
	}
	if err := available(n); err != nil {
		return Mem{}, err
	}
	b := make([]byte, n+alignment)
	start := unsafe.Pointer(unsafe.SliceData(b))
	skip := -uintptr(start) & (alignment - 1)
	return Mem{base: unsafe.Add(start, skip), n: n}, nil
}

// available reports that n bytes are more than the machine can give. Small
// requests are not worth the question.
func available(n int) error {
	const small = 16 << 20
	if n <= small {
		return nil
	}
	if free, ok := freeMemory(); ok && n > free {
		return fmt.Errorf("shmem: %d bytes of memory wanted, %d available", n, free)
	}
	return nil
}
