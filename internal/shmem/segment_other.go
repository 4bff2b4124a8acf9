//go:build !linux

package shmem

import (
	"fmt"
	"runtime"

	"github.com/goccl/goccl"
)

// Segment is memory that several processes map. There is none on this system.
type Segment struct{}

// Create reports goccl.ErrUnsupported on this system.
func Create(name string, n int) (*Segment, error) {
	return nil, fmt.Errorf("shmem: segments between processes on %s: %w", runtime.GOOS, goccl.ErrUnsupported)
}

// Open checks the handle and reports goccl.ErrUnsupported on this system.
func Open(handle []byte) (*Segment, error) {
	if _, err := decodeHandle(handle); err != nil {
		return nil, err
	}
	return Create("", 0)
}

// Mem returns the empty span.
func (s *Segment) Mem() Mem { return Mem{} }

// Handle returns nil.
func (s *Segment) Handle() []byte { return nil }

// Seal does nothing.
func (s *Segment) Seal() error { return nil }

// Close does nothing.
func (s *Segment) Close() error { return nil }
