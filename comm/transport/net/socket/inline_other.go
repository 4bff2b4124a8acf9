//go:build !linux

package socket

// turn leaves all writing to the pump here.
type turn struct{}

func (*turn) init(*sendSide) {}

func (*turn) park() {}

func (*turn) take() bool { return true }

func (*turn) write() bool { return false }
