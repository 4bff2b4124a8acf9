//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package store

import (
	"errors"
	"os"
	"syscall"
)

// tryLockFile takes the exclusive lock on f unless another open file has it. The
// lock belongs to the open file: two handles in one process exclude each other,
// and the system drops it when its process dies.
func tryLockFile(f *os.File) (bool, error) {
	err := flock(f, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

func unlockFile(f *os.File) error { return flock(f, syscall.LOCK_UN) }

func flock(f *os.File, how int) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var lockErr error
	if err := raw.Control(func(fd uintptr) {
		for {
			if lockErr = syscall.Flock(int(fd), how); lockErr != syscall.EINTR {
				return
			}
		}
	}); err != nil {
		return err
	}
	if lockErr != nil {
		return &os.PathError{Op: "flock", Path: f.Name(), Err: lockErr}
	}
	return nil
}
