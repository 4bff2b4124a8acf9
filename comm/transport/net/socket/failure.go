package socket

import (
	"fmt"
	"io"
	"sync/atomic"

	"github.com/goccl/goccl"
)

// failure is the first reason why a side no longer works.
type failure struct {
	first atomic.Pointer[broken]
}

type broken struct {
	err   error
	after uint64 // steps that were delivered whole before it
}

func (f *failure) set(err error, after uint64) { f.first.CompareAndSwap(nil, &broken{err, after}) }

func lost(err error) error { return fmt.Errorf("%w: %w", goccl.ErrPeerLost, err) }

var (
	// errGoodbye is the orderly end.
	errGoodbye = fmt.Errorf("%w: it closed the connection: %w", goccl.ErrPeerLost, io.EOF)
	// errCut is an end without a goodbye.
	errCut = fmt.Errorf("%w: the connection ended without a goodbye: its process has ended", goccl.ErrPeerLost)
	// errLeft is the end of the receiver, which says nothing before it goes.
	errLeft = fmt.Errorf("%w: it closed the connection or its process has ended", goccl.ErrPeerLost)
)
