package launch

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/goccl/goccl"
)

// ExitError is the end of the first rank that failed. It matches
// goccl.ErrPeerLost.
type ExitError struct {
	Rank, PID int
	Code      int       // exit code, -1 if a signal ended it
	Signal    os.Signal // nil if it exited by itself
	Tail      string    // the last lines it wrote to both outputs, at most 8 KiB
}

// Error returns one line, without the tail.
func (e *ExitError) Error() string {
	if e.Signal != nil {
		return fmt.Sprintf("goccl: rank %d (pid %d) was killed by signal %s", e.Rank, e.PID, describe(e.Signal))
	}
	return fmt.Sprintf("goccl: rank %d (pid %d) exited with code %d", e.Rank, e.PID, e.Code)
}

// Unwrap returns goccl.ErrPeerLost.
func (e *ExitError) Unwrap() error { return goccl.ErrPeerLost }

// StopError says that the job was told to stop and did. It matches
// goccl.ErrAborted.
type StopError struct {
	Signal os.Signal // what Stop was given
}

// Error returns one line.
func (e *StopError) Error() string {
	return fmt.Sprintf("goccl: all ranks were stopped by signal %s", describe(e.Signal))
}

// Unwrap returns goccl.ErrAborted.
func (e *StopError) Unwrap() error { return goccl.ErrAborted }

// describe writes "9 (killed)".
func describe(sig os.Signal) string {
	if s, ok := sig.(syscall.Signal); ok {
		return fmt.Sprintf("%d (%s)", int(s), s)
	}
	return sig.String()
}

// ExitCode returns what a launcher should exit with after Wait returned err: 0,
// the code of the first rank that failed, 128 plus the number of the signal that
// ended it or stopped the job, or 1 for other errors.
func ExitCode(err error) int {
	var exit *ExitError
	var stop *StopError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && exit.Signal == nil:
		return exit.Code
	case errors.As(err, &exit):
		return signalCode(exit.Signal)
	case errors.As(err, &stop):
		return signalCode(stop.Signal)
	}
	return 1
}

func signalCode(sig os.Signal) int {
	if s, ok := sig.(syscall.Signal); ok {
		return 128 + int(s)
	}
	return 1
}
