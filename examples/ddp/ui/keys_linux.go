package ui

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// OpenKeys starts to read single keys from in. The error is ErrNoKeys where there
// are none to read. The caller must Close the result, or the terminal stays as it is
// set now.
func OpenKeys(in *os.File) (*Keys, error) {
	// A background program that sets its terminal is stopped by the kernel.
	if group, err := unix.IoctlGetInt(int(in.Fd()), unix.TIOCGPGRP); err != nil || group != unix.Getpgrp() {
		return nil, ErrNoKeys
	}
	return startKeys(in)
}

func startKeys(in *os.File) (*Keys, error) {
	fd := int(in.Fd())
	before, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return nil, ErrNoKeys
	}
	wakeRead, wakeWrite, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("ui: keys: %w", err)
	}
	single := *before
	single.Lflag &^= unix.ICANON | unix.ECHO
	single.Cc[unix.VMIN], single.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, &single); err != nil {
		return nil, errors.Join(fmt.Errorf("ui: keys: %w", err), wakeRead.Close(), wakeWrite.Close())
	}
	k := &Keys{c: make(chan byte, 8), wake: wakeWrite}
	k.restore = func() error {
		return errors.Join(unix.IoctlSetTermios(int(in.Fd()), unix.TCSETS, before), wakeRead.Close())
	}
	k.done.Go(func() { k.read(fd, int(wakeRead.Fd())) })
	return k, nil
}

// read passes keys on until the write side of the pipe wake is closed.
func (k *Keys) read(fd, wake int) {
	defer close(k.c)
	buf := make([]byte, 16)
	for {
		ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: int32(wake), Events: unix.POLLIN}}
		if _, err := unix.Poll(ready, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return
		} else if err != nil {
			continue
		}
		if ready[1].Revents != 0 {
			return
		}
		n, err := unix.Read(fd, buf)
		if errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) {
			continue
		}
		if err != nil || n <= 0 {
			return
		}
		for _, key := range buf[:n] {
			select {
			case k.c <- key:
			default: // the owner is busy: a key now would come too late
			}
		}
	}
}
