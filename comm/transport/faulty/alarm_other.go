//go:build !linux

package faulty

import (
	"sync"
	"time"
)

// alarm is a sleep that another goroutine can end.
type alarm struct {
	once    sync.Once
	stopped chan struct{}
}

func newAlarm() (*alarm, error) { return &alarm{stopped: make(chan struct{})}, nil }

// wait sleeps for d and reports whether it was left to. One goroutine at a time.
func (a *alarm) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-a.stopped:
		return false
	}
}

// stop ends the sleep that is under way and all later ones.
func (a *alarm) stop() { a.once.Do(func() { close(a.stopped) }) }
