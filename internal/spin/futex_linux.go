package spin

import (
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// Futex operations without the private flag: the word may be shared between
// processes.
const (
	opWait = 0
	opWake = 1
)

func gosched() { runtime.Gosched() }

// yield gives the core to another thread. It is a raw call: the P stays here,
// which is right, since what runs meanwhile is another process.
func yield() { syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }

// futexWait sleeps until a ring or for d, unless the word's low half is no
// longer want. The kernel looks at the low half: both architectures with a futex
// here are little-endian.
func futexWait(word *atomic.Uint64, want uint32, d time.Duration) {
	ts := syscall.NsecToTimespec(d.Nanoseconds())
	// A return for any reason is only a hint: the caller looks again.
	syscall.Syscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(word)), opWait, uintptr(want), uintptr(unsafe.Pointer(&ts)), 0, 0)
}

func futexWake(word *atomic.Uint64) {
	const all = 1<<31 - 1
	syscall.RawSyscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(word)), opWake, all, 0, 0, 0)
}
