//go:build unix

package bootstrap

import (
	"errors"
	"syscall"
)

// transientErrnos are what a connect returns while the other side or the network
// is still coming up.
var transientErrnos = []error{syscall.ECONNREFUSED, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.ETIMEDOUT,
	syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE, syscall.EADDRNOTAVAIL, syscall.ENETDOWN, syscall.EHOSTDOWN}

func isFamilyMissing(err error) bool {
	return errors.Is(err, syscall.EAFNOSUPPORT) || errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EPROTONOSUPPORT)
}

func isInUse(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }

func isTooManyFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// openFileLimit returns the soft limit of open files of this process, 0 if not
// known. The Go runtime has already raised it to the hard limit.
func openFileLimit() uint64 {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
		return 0
	}
	return uint64(l.Cur)
}
