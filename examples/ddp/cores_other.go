//go:build !linux

package main

// takeCores does nothing: processes are not bound to cores here.
func takeCores(int, int) (release func() error, err error) {
	return func() error { return nil }, nil
}

// giveWay does nothing: threads have no priority of their own here.
func giveWay() error { return nil }
