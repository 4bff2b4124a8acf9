package release

import (
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// A reader that sees the word sees what was written before it.
func TestStorePublishes(t *testing.T) {
	var payload [8]uint64
	var word, taken atomic.Uint64
	const rounds = 20_000
	done := make(chan uint64)
	go func() {
		var wrong uint64
		for i := uint64(1); i <= rounds; i++ {
			for word.Load() != i {
				yield()
			}
			for k, v := range payload {
				if v != i+uint64(k)<<32 {
					wrong++
				}
			}
			Store(&taken, i)
		}
		done <- wrong
	}()
	for i := uint64(1); i <= rounds; i++ {
		for k := range payload {
			payload[k] = i + uint64(k)<<32
		}
		Store(&word, i)
		for taken.Load() != i {
			yield()
		}
	}
	require.Zero(t, <-done)
}

func yield() { runtime.Gosched() }

func BenchmarkStore(b *testing.B) {
	var w atomic.Uint64
	for b.Loop() {
		Store(&w, 1)
	}
}
