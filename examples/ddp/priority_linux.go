package main

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// computing is the nice value of a thread that gives way to those with messages.
const computing = 10

// giveWay keeps the calling goroutine on its thread and lets the other threads of the
// process, which carry messages, go before it. Ranks that share a core would
// otherwise let every message wait for a time slice of the one that computes.
func giveWay() error {
	runtime.LockOSThread()
	return unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), computing)
}
