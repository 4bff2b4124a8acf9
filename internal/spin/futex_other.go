//go:build !linux

package spin

import (
	"runtime"
	"sync/atomic"
	"time"
)

func gosched() { runtime.Gosched() }

func yield() { runtime.Gosched() }

// futexWait has no kernel wait here: it is a short sleep.
func futexWait(*atomic.Uint64, uint32, time.Duration) { time.Sleep(awake) }

func futexWake(*atomic.Uint64) {}
