package leak

import (
	"runtime"
	"strings"
)

// keepers are functions whose goroutines live as long as the process and belong
// to the runtime or the test runner.
var keepers = []string{
	"testing.(*M).", "testing.(*T).Run(", "testing.runTests(", "testing.tRunner.func", "testing.(*F).",
	"testing.runFuzzing(", "os/signal.signal_recv(", "os/signal.loop(", "runtime.ensureSigM",
	"runtime/trace.", "runtime/pprof.", "created by runtime.", "created by testing.",
}

// goroutines returns all goroutines but the caller's and the keepers'.
func goroutines() []resource {
	buf := make([]byte, 1<<16)
	n := runtime.Stack(buf, true)
	for n == len(buf) {
		buf = make([]byte, 2*len(buf))
		n = runtime.Stack(buf, true)
	}
	var found []resource
	stacks := strings.Split(string(buf[:n]), "\n\n")
	for _, s := range stacks[1:] { // the first is this one
		head, _, _ := strings.Cut(s, " [") // "goroutine 12"
		if !kept(s) {
			found = append(found, resource{head, s})
		}
	}
	return found
}

func kept(stack string) bool {
	for _, k := range keepers {
		if strings.Contains(stack, k) {
			return true
		}
	}
	return false
}
