package simd

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
)

// TestKernelsLetTheCollectorRun demands of every kernel that a whole garbage
// collection fits into a single call over a large buffer. A collection stops
// the world twice, so one that begins and ends inside the call shows that the
// call has safe points; without them it would end only after the call.
func TestKernelsLetTheCollectorRun(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		size := 64 << 20
		if active.granule == 0 {
			size = 4 << 20 // plain Go is slow, and slower still under the race detector
		}
		mem := make([]byte, size)
		p, half := address(mem), size/2
		for _, d := range goccl.DTypes() {
			n := size / d.Size()
			for _, op := range goccl.ReduceOps()[:operations] {
				collectDuring(t, func() { Reduce2(d, op, p, p, p, n) })
				collectDuring(t, func() { Reduce(d, op, p, []uintptr{p, p, p}, n) })
			}
			if d.Float() {
				collectDuring(t, func() { Scale(d, p, p, n, 1.25) })
				collectDuring(t, func() { Divide(d, p, p, n, 3) })
			}
		}
		collectDuring(t, func() { Copy(p, p+uintptr(half), half) })
		collectDuring(t, func() { CopyNT(p, p+uintptr(half), half) })
		runtime.KeepAlive(mem)
	})
}

// collectDuring repeats call until one collection has run inside one call.
func collectDuring(t *testing.T, call func()) {
	var calls atomic.Int64 // odd inside a call
	var fits atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !fits.Load() {
			before := calls.Load()
			runtime.GC()
			fits.Store(before&1 == 1 && calls.Load() == before)
		}
	}()
	watchdog := time.Now().Add(60 * time.Second)
	for !fits.Load() {
		if time.Now().After(watchdog) {
			fits.Store(true)
			<-done
			require.Fail(t, "no collection fitted into a call for 60 s")
		}
		calls.Add(1)
		call()
		calls.Add(1)
	}
	<-done
}
