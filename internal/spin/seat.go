package spin

import (
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// A goroutine that sleeps for a word of this process does so on a channel, since
// a futex would keep its P from other goroutines. The channel is found by the
// word's address in one of a few lots.
type lot struct {
	mu    sync.Mutex
	seats map[*atomic.Uint64][]*seat
}

var lots [64]lot

func lotOf(word *atomic.Uint64) *lot {
	return &lots[uintptr(unsafe.Pointer(word))>>6%uintptr(len(lots))]
}

// call wakes all who have a seat for the word and clears their seats.
func (l *lot) call(word *atomic.Uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.seats[word] {
		s.called <- struct{}{} // room for one: a seat is called once for each take
	}
	delete(l.seats, word)
}

// seat is a waiter's place in a lot.
type seat struct {
	called chan struct{}
	timer  *time.Timer
}

func (s *seat) take(word *atomic.Uint64) {
	if s.called == nil {
		s.called = make(chan struct{}, 1)
		s.timer = time.NewTimer(time.Hour)
	}
	l := lotOf(word)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, other := range l.seats[word] {
		if other == s {
			return
		}
	}
	select { // a call for an earlier take that nobody waited for
	case <-s.called:
	default:
	}
	if l.seats == nil {
		l.seats = make(map[*atomic.Uint64][]*seat)
	}
	l.seats[word] = append(l.seats[word], s)
}

func (s *seat) leave(word *atomic.Uint64) {
	l := lotOf(word)
	l.mu.Lock()
	defer l.mu.Unlock()
	rest := l.seats[word][:0]
	for _, other := range l.seats[word] {
		if other != s {
			rest = append(rest, other)
		}
	}
	if len(rest) == 0 {
		delete(l.seats, word)
	} else {
		l.seats[word] = rest
	}
}

// wait reports whether the seat was called within d.
func (s *seat) wait(d time.Duration) bool {
	s.timer.Reset(d)
	select {
	case <-s.called:
		return true
	case <-s.timer.C:
		return false
	}
}
