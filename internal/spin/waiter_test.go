package spin

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const watchdog = 60 * time.Second

// policies are the ways to wait, each with a word of its own.
func policies() map[string]Policy {
	m := map[string]Policy{}
	for _, local := range []bool{false, true} {
		for _, crowded := range []bool{false, true} {
			for _, word := range []*atomic.Uint64{nil, new(atomic.Uint64)} {
				p := Policy{Local: local, Oversubscribed: crowded, Word: word}
				m[fmt.Sprintf("local=%v,oversubscribed=%v,word=%v", local, crowded, word != nil)] = p
			}
		}
	}
	m["network=true"] = Policy{Network: true, Word: new(atomic.Uint64)}
	m["network=true,word=false"] = Policy{Network: true}
	return m
}

// waitFor waits until the condition holds.
func waitFor(t *testing.T, w *Waiter, done func() bool) {
	w.Reset()
	defer w.Reset()
	for !done() {
		if w.Waited() > watchdog {
			t.Error("the wait did not end")
			return
		}
		w.Turn()
	}
}

func TestCollectorRunsBesideAWait(t *testing.T) {
	for name, p := range policies() {
		t.Run(name, func(t *testing.T) {
			var stop atomic.Bool
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				waitFor(t, &Waiter{Policy: p}, stop.Load)
			}()
			collected := make(chan struct{})
			go func() {
				defer close(collected)
				for range 20 {
					runtime.GC()
				}
			}()
			select {
			case <-collected:
			case <-time.After(watchdog):
				t.Error("the collector waits for the waiter")
			}
			stop.Store(true)
			<-ended
		})
	}
}

func TestWakeReachesEverySleeper(t *testing.T) {
	for name, policy := range map[string]Policy{"local": {Local: true}, "process": {}, "network": {Network: true}} {
		t.Run(name, func(t *testing.T) {
			var word, value atomic.Uint64
			policy.Word = &word
			const sleepers = 3
			ended := make(chan struct{}, sleepers)
			for range sleepers {
				go func() {
					waitFor(t, &Waiter{Policy: policy}, func() bool { return value.Load() == 7 })
					ended <- struct{}{}
				}()
			}
			poll := Waiter{}
			waitFor(t, &poll, func() bool { return word.Load() != 0 }) // at least one sleeps
			value.Store(7)
			Wake(&word)
			for range sleepers {
				select {
				case <-ended:
				case <-time.After(watchdog):
					t.Fatal("a sleeper was left")
				}
			}
			require.Zero(t, word.Load(), "a flag was left on the word")
		})
	}
}

func seated(word *atomic.Uint64) int {
	l := lotOf(word)
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.seats[word])
}

func TestSeatIsCalledWithoutATimeout(t *testing.T) {
	var word atomic.Uint64
	var s seat
	for round := range 3 {
		s.take(&word)
		s.take(&word) // taking it twice leaves one seat
		word.Or(flagLocal)
		go Wake(&word)
		require.True(t, s.wait(watchdog), "round %d", round)
		require.Zero(t, seated(&word))
	}
	s.take(&word)
	s.leave(&word)
	require.Zero(t, seated(&word))
}

func TestWakeWithNobodyAsleepLeavesTheWord(t *testing.T) {
	var word atomic.Uint64
	Wake(&word)
	require.Zero(t, word.Load())
	word.Store(flagFutex)
	Wake(&word)
	require.Zero(t, word.Load(), "a ring takes the flags")
}

func TestWaitDoesNotAllocateWhileHot(t *testing.T) {
	w := Waiter{Policy: Policy{Word: new(atomic.Uint64)}}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for range hotTurns {
			w.Turn()
		}
		w.Reset()
	}))
}

func TestResetTakesTheFlagBack(t *testing.T) {
	for name, p := range policies() {
		if p.Word == nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			w := Waiter{Policy: p}
			for begin := time.Now(); p.Word.Load() == 0; {
				require.Less(t, time.Since(begin), watchdog)
				w.Turn()
			}
			w.Reset()
			require.Zero(t, p.Word.Load())
			require.Nil(t, w.armed)
		})
	}
}

func BenchmarkTurn(b *testing.B) {
	for _, p := range []Policy{{}, {Oversubscribed: true}, {Local: true, Oversubscribed: true}} {
		b.Run(fmt.Sprintf("local=%v,oversubscribed=%v", p.Local, p.Oversubscribed), func(b *testing.B) {
			w := Waiter{Policy: p}
			for range b.N {
				w.Turn()
				w.Reset()
			}
		})
	}
}
