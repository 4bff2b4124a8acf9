package spin

import "sync/atomic"

// The flags of a word. Sleepers set theirs, whoever rings takes all of them.
const (
	flagFutex = 1 << iota // a thread of some process sleeps in the kernel
	flagLocal             // a goroutine of this process has a seat
)

// Wake wakes whoever sleeps on the word. Call it after the change that the
// sleeper waits for has been stored atomically. With nobody asleep it costs one
// atomic load. It never blocks.
func Wake(word *atomic.Uint64) {
	if word.Load() != 0 {
		wake(word)
	}
}

//go:noinline
func wake(word *atomic.Uint64) {
	flags := word.Swap(0)
	if flags&flagFutex != 0 {
		futexWake(word)
	}
	if flags&flagLocal != 0 {
		lotOf(word).call(word)
	}
}
