package shmem

import (
	"fmt"
	"unsafe"
)

// Alignment of private memory: two cache lines, since cores fetch them in pairs.
const alignment = 128

// Private returns n zeroed bytes that only this process sees, aligned to 128.
// They are on the Go heap, so that the race detector watches them and nothing
// dangles; owner must be kept reachable as long as the span is in use.
func Private(n int) (m Mem, owner any, err error) {
	if n <= 0 || n > maxBytes {
		return Mem{}, nil, fmt.Errorf("shmem: %d bytes of memory: size out of range", n)
	}
	if err := available(n); err != nil {
		return Mem{}, nil, err
	}
	b := make([]byte, n+alignment)
	addr := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return At((addr+alignment-1)&^(alignment-1), n), b, nil
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
