package faulty

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// alarm is a sleep that another goroutine can end. The runtime's own timers are
// only as exact as a millisecond when nothing else runs; a timer descriptor is
// exact to some microseconds and blocks no thread.
type alarm struct{ file *os.File }

func newAlarm() (*alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	return &alarm{os.NewFile(uintptr(fd), "timerfd")}, nil
}

// wait sleeps for d and reports whether it was left to. One goroutine at a time.
func (a *alarm) wait(d time.Duration) bool {
	raw, err := a.file.SyscallConn()
	if err != nil {
		return false
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.TimerfdSettime(int(fd), 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(d.Nanoseconds())}, nil)
	})
	if err != nil || failed != nil {
		return false
	}
	var expired [8]byte
	_, err = a.file.Read(expired[:])
	return err == nil
}

// stop ends the sleep that is under way and all later ones.
func (a *alarm) stop() { a.file.Close() }
