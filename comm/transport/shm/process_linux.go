package shm

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// handle is a pidfd, on which the runtime's poller waits: no thread is blocked.
// Where the kernel has none, the process table is read four times a second.
type handle struct{ file *os.File }

func openProcess(pid int) handle {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return handle{}
	}
	return handle{os.NewFile(uintptr(fd), "pidfd")}
}

func (h handle) close() {
	if h.file != nil {
		h.file.Close()
	}
}

// wait reports whether the process ended before ctx did.
func (h handle) wait(ctx context.Context, p *process) bool {
	if h.file == nil || h.file.SetReadDeadline(time.Time{}) != nil {
		return poll(ctx, p)
	}
	stop := context.AfterFunc(ctx, func() { h.file.SetReadDeadline(time.Now()) })
	defer stop()
	raw, err := h.file.SyscallConn()
	if err != nil {
		return poll(ctx, p)
	}
	// A pidfd becomes readable when its process ends. The wait also ends with an
	// error when ctx does.
	return raw.Read(ended) == nil
}

func ended(fd uintptr) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n == 1
}

// poll is the wait without a pidfd.
func poll(ctx context.Context, p *process) bool {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		if now, err := startTime(p.pid); err != nil || now != p.start {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
}
