package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// takeCores keeps this process on its share of the cores, as a rank on a network has
// a machine of its own: left alone, one rank has a core to itself for a while and
// three share another, and then they wait for each other. It returns what puts the
// process back on all cores.
func takeCores(rank, ranks int) (release func() error, err error) {
	var all, share unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return nil, fmt.Errorf("cores of this process: %w", err)
	}
	var cores []int
	for core := 0; len(cores) < all.Count(); core++ {
		if all.IsSet(core) {
			cores = append(cores, core)
		}
	}
	first := rank * len(cores) / ranks
	for _, core := range cores[first:max(first+1, (rank+1)*len(cores)/ranks)] {
		share.Set(core)
	}
	if err := keepTo(&share); err != nil {
		return nil, err
	}
	return func() error { return keepTo(&all) }, nil
}

// keepTo binds all threads of the process to cores. Those to come are made by them,
// and inherit it.
func keepTo(cores *unix.CPUSet) error {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, t := range threads {
		id, err := strconv.Atoi(t.Name())
		if err != nil {
			return err
		}
		// A thread may have ended since.
		if err := unix.SchedSetaffinity(id, cores); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("cores of thread %d: %w", id, err)
		}
	}
	return nil
}

// computing is the nice value of a thread that gives way to those with messages.
const computing = 10

// giveWay keeps the calling goroutine on its thread and lets the other threads of the
// process, which carry messages, go before it. Where ranks share a core every message
// would otherwise wait for a time slice of the one that computes.
func giveWay() error {
	runtime.LockOSThread()
	return unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), computing)
}
