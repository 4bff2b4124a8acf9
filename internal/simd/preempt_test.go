package simd

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
)

// TestKernelsBesideTheCollector runs every kernel over 64 MiB while another
// goroutine does nothing but collect.
func TestKernelsBesideTheCollector(t *testing.T) {
	var stop atomic.Bool
	collected := make(chan int)
	go func() {
		n := 0
		for ; !stop.Load(); n++ {
			runtime.GC()
		}
		collected <- n
	}()
	eachLevel(t, func(t *testing.T) {
		size := 64 << 20
		if active.granule == 0 {
			size = 64 << 10 // plain Go has no kernel to wait for
		}
		mem := make([]byte, size)
		p, half := address(mem), size/2
		for _, d := range goccl.DTypes() {
			n := size / d.Size()
			for _, op := range goccl.ReduceOps()[:operations] {
				Reduce2(d, op, p, p, p, n)
				Reduce(d, op, p, []uintptr{p, p, p}, n)
			}
			if d.Float() {
				Scale(d, p, p, n, 1.25)
				Divide(d, p, p, n, 3)
			}
		}
		Copy(p, p+uintptr(half), half)
		CopyNT(p, p+uintptr(half), half)
		runtime.KeepAlive(mem)
	})
	stop.Store(true)
	select {
	case n := <-collected:
		require.Positive(t, n)
	case <-time.After(60 * time.Second):
		require.Fail(t, "the collector did not finish within 60 s")
	}
}

// TestCollectionFitsIntoOneCall demands that a whole garbage collection happens
// inside a single call over a large buffer, for each way into a kernel. A
// collection stops the world twice, so one that begins and ends inside the call
// shows that the call has safe points; without them it would end only after it.
func TestCollectionFitsIntoOneCall(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		const size = 64 << 20
		mem := make([]byte, size)
		p, n, half := address(mem), size/4, size/2
		for name, call := range map[string]func(){
			"Reduce2": func() { Reduce2(goccl.F32, goccl.Sum, p, p, p, n) },
			"Reduce":  func() { Reduce(goccl.F32, goccl.Sum, p, []uintptr{p, p, p}, n) },
			"Scale":   func() { Scale(goccl.F32, p, p, n, 1.25) },
			"Divide":  func() { Divide(goccl.F32, p, p, n, 3) },
			"Copy":    func() { Copy(p, p+uintptr(half), half) },
			"CopyNT":  func() { CopyNT(p, p+uintptr(half), half) },
		} {
			t.Run(name, func(t *testing.T) { collectDuring(t, call) })
		}
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
