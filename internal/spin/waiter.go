// Package spin owns the only wait loop of the library: how a rank passes the
// time until a word in shared memory changes.
//
// A wait starts hot, because most of them end within a microsecond: a few PAUSE
// instructions a turn. It then gives the core away, to other processes by
// sched_yield and to other goroutines by runtime.Gosched. After 50 us it sleeps
// on a word that the other side rings, never longer than a millisecond at a time,
// so that a caller that looks at its context once a turn is never late.
//
// The loop itself belongs to the caller:
//
//	w.Reset()
//	for !fifo.Ready() {
//		if err := ctx.Err(); err != nil {
//			return err
//		}
//		w.Turn()
//	}
//	w.Reset()
//
// Every turn passes a Go function with a frame, where the runtime can stop the
// goroutine. A loop of assembly or of raw system calls alone has no such place
// and would hold up the garbage collector for ever.
package spin

import (
	"sync/atomic"
	"time"
)

const (
	hotTurns   = 64                    // turns of a few PAUSE before a core is given away
	hotPauses  = 2                     // PAUSE instructions in a hot turn
	coldPauses = 20                    // PAUSE instructions before each sched_yield
	roundTurns = 32                    // turns between two Gosched, and between two looks at the clock
	awake      = 50 * time.Microsecond // waiting time before the first sleep
	nap        = time.Millisecond      // longest sleep
)

// Policy says who is waited for.
type Policy struct {
	// Local: all peers are goroutines of this process.
	Local bool
	// Network: what is waited for comes through a pump, a goroutine of this process
	// that the runtime's network poller wakes. The poller runs when a P has nothing
	// else to do, so these waits sleep on Word from the first turn.
	Network bool
	// Oversubscribed: the ranks of this machine have more runnable threads than
	// there are cores (see Cores), so that a peer may be waiting for this core.
	Oversubscribed bool
	// Word is what the other side passes to Wake after it has changed what is
	// waited for. It must be shared with all who ring it. Without one, long waits
	// sleep for a fixed short time.
	Word *atomic.Uint64
}

// Waiter is one wait at a time of one goroutine. The zero value with a Policy is
// ready for use. It must not be copied once it has been used.
type Waiter struct {
	Policy
	turns uint32
	armed *atomic.Uint64 // the word that holds this waiter's flag; nil: none does
	local bool           // the flag is that of a seat
	since time.Time
	seat  seat
}

// Reset ends a wait, so that the next one starts hot. It costs one comparison
// when the wait has not slept.
func (w *Waiter) Reset() {
	w.turns = 0
	if w.armed != nil {
		w.disarm()
	}
}

// Turn passes one turn of a wait: from about 20 ns at first to at most a
// millisecond in a long one. The caller looks at its condition between turns.
//
//go:noinline
func (w *Waiter) Turn() {
	w.turns++
	if w.turns%roundTurns == 0 {
		w.round()
		return
	}
	if w.armed != nil {
		w.sleep()
		return
	}
	if w.Network && w.Word != nil {
		w.arm()
		return
	}
	switch {
	case w.turns < hotTurns && !w.Oversubscribed && !w.Network:
		pause(hotPauses)
	case w.Local, w.Network:
		gosched()
	default:
		pause(coldPauses)
		yield()
	}
}

// Waited returns how long the wait has lasted, zero while it is hot. It is only
// as exact as a round of turns.
func (w *Waiter) Waited() time.Duration {
	if w.turns < roundTurns {
		return 0
	}
	return time.Since(w.since)
}

// round is the turn in which other goroutines run, and after which the wait may
// go to sleep.
func (w *Waiter) round() {
	gosched()
	if w.turns == roundTurns {
		w.since = time.Now()
		return
	}
	if time.Since(w.since) < awake {
		return
	}
	if w.Word == nil {
		time.Sleep(awake)
		return
	}
	w.arm()
}

// arm puts the flag on the word. The caller looks at its condition once more
// before the next turn sleeps, so that a change in between is not missed.
func (w *Waiter) arm() {
	local := w.Local || w.Network
	if w.armed != nil && (w.armed != w.Word || w.local != local) {
		w.disarm()
	}
	w.armed, w.local = w.Word, local
	if w.local {
		w.seat.take(w.armed)
		w.armed.Or(flagLocal)
		return
	}
	w.armed.Or(flagFutex)
}

func (w *Waiter) disarm() {
	if w.local {
		w.armed.And(^uint64(flagLocal))
		w.seat.leave(w.armed)
	} else {
		w.armed.And(^uint64(flagFutex))
	}
	w.armed = nil
}

// sleep waits for a ring on the armed word. Whoever rings takes the flag away.
func (w *Waiter) sleep() {
	if w.local {
		if w.seat.wait(nap) {
			w.armed = nil
			w.turns = hotTurns
		}
		return
	}
	v := w.armed.Load()
	if v&flagFutex == 0 {
		w.armed = nil
		w.turns = hotTurns
		return
	}
	futexWait(w.armed, uint32(v), nap)
}
