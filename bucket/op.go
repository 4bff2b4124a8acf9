package bucket

import (
	"context"

	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/process_group"
)

// op is an operation of a Reducer: a Work, an exchange beside a device's operations,
// or neither: the wire is left out, or it could not be started.
type op struct {
	work  processgroup.Work
	aside *aside
	none  bool
	err   error // why it was not started
}

var _ handle = op{}

// Test reports whether the operation has ended, and how.
func (o op) Test() (bool, error) {
	switch {
	case o.none || o.err != nil:
		return true, o.err
	case o.aside != nil:
		return o.aside.Test()
	}
	return o.work.Test()
}

// Wait blocks until it has ended or ctx ends.
func (o op) Wait(ctx context.Context) error {
	switch {
	case o.none || o.err != nil:
		return o.err
	case o.aside != nil:
		return o.aside.Wait(ctx)
	}
	return o.work.Wait(ctx)
}

// Join makes s wait for it.
func (o op) Join(s device.Stream) error {
	if o.none || o.err != nil {
		return o.err
	}
	return o.work.Join(s)
}
