//go:build !amd64 && !arm64

package spin

import "runtime"

// pause has no instruction here: it lets other goroutines run.
func pause(uint32) { runtime.Gosched() }
