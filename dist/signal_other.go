//go:build !unix

package dist

import "os"

// dumpSignals is empty where there is no signal for it.
var dumpSignals []os.Signal
