package bucket

import (
	"context"

	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/process_group"
)

// op is the operation of a bucket: a Work, or none when the wire is left out.
type op struct {
	work processgroup.Work
	none bool
}

var _ handle = op{}

// Test reports whether the operation has ended, and how.
func (o op) Test() (bool, error) {
	if o.none {
		return true, nil
	}
	return o.work.Test()
}

// Wait blocks until it has ended or ctx ends.
func (o op) Wait(ctx context.Context) error {
	if o.none {
		return nil
	}
	return o.work.Wait(ctx)
}

// Join makes s wait for it.
func (o op) Join(s device.Stream) error {
	if o.none {
		return nil
	}
	return o.work.Join(s)
}
