//go:build unix

package main

import (
	"fmt"
	"os"
	"syscall"
)

// inheritNotice returns the pipe on which the parent writes to this rank, and
// closes those of the other ranks.
func inheritNotice(rank, ranks int) (*os.File, error) {
	for r := range ranks {
		if r != rank {
			syscall.Close(firstNotice + r)
		}
	}
	fd := firstNotice + rank
	// Without this a read has no deadline.
	if err := syscall.SetNonblock(fd, true); err != nil {
		return nil, fmt.Errorf("descriptor %d, on which notices come: %w", fd, err)
	}
	syscall.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), "notices"), nil
}
