package bootstrap

import (
	"errors"
	"syscall"
)

// Winsock error numbers; package syscall maps the Unix names to invented values
// that no system call returns.
const (
	wsaEMFILE        = syscall.Errno(10024)
	wsaEAFNOSUPPORT  = syscall.Errno(10047)
	wsaEADDRINUSE    = syscall.Errno(10048)
	wsaEADDRNOTAVAIL = syscall.Errno(10049)
	wsaENETDOWN      = syscall.Errno(10050)
	wsaENETUNREACH   = syscall.Errno(10051)
	wsaECONNABORTED  = syscall.Errno(10053)
	wsaECONNRESET    = syscall.Errno(10054)
	wsaETIMEDOUT     = syscall.Errno(10060)
	wsaECONNREFUSED  = syscall.Errno(10061)
	wsaEHOSTUNREACH  = syscall.Errno(10065)
)

// transientErrnos are what a connect returns while the other side or the network
// is still coming up.
var transientErrnos = []error{wsaECONNREFUSED, wsaEHOSTUNREACH, wsaENETUNREACH, wsaETIMEDOUT,
	wsaECONNRESET, wsaECONNABORTED, wsaEADDRNOTAVAIL, wsaENETDOWN}

func isFamilyMissing(err error) bool {
	return errors.Is(err, wsaEAFNOSUPPORT) || errors.Is(err, wsaEADDRNOTAVAIL)
}

func isInUse(err error) bool { return errors.Is(err, wsaEADDRINUSE) }

func isTooManyFiles(err error) bool { return errors.Is(err, wsaEMFILE) }

// openFileLimit returns 0: Windows has no such limit per process.
func openFileLimit() uint64 { return 0 }
