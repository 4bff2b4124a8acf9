//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package store

import (
	"fmt"
	"os"
	"runtime"

	"github.com/goccl/goccl"
)

// tryLockFile says that this system has no lock that a file store could use.
func tryLockFile(*os.File) (bool, error) {
	return false, fmt.Errorf("%w: file locks on %s; use a tcp store", goccl.ErrUnsupported, runtime.GOOS)
}

func unlockFile(*os.File) error { return nil }
