//go:build unix

package dist

import (
	"os"
	"syscall"
)

// dumpSignals ask a job for its flight recorders. SIGQUIT stays the runtime's,
// which prints all goroutines and ends the process.
var dumpSignals = []os.Signal{syscall.SIGUSR2}
