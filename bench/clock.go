package main

import (
	"time"

	"github.com/goccl/goccl/device/cuda"
)

// clock takes times on a GPU, from events before and after the work. They leave out
// how long the host takes to see the end. The methods of a nil clock do nothing.
type clock struct{ from, to *cuda.Event }

func newClock(dev *cuda.Device) (*clock, error) {
	from, err := dev.NewTimer()
	if err != nil {
		return nil, err
	}
	to, err := dev.NewTimer()
	if err != nil {
		from.Release()
		return nil, err
	}
	return &clock{from, to}, nil
}

func (c *clock) close() error {
	c.from.Release()
	c.to.Release()
	return nil
}

func (c *clock) start(on *cuda.Stream) error {
	if c == nil {
		return nil
	}
	return mark(on, c.from)
}

func (c *clock) stop(on *cuda.Stream) error {
	if c == nil {
		return nil
	}
	return mark(on, c.to)
}

func mark(on *cuda.Stream, e *cuda.Event) error {
	sec, err := on.Enter()
	if err != nil {
		return err
	}
	defer sec.Leave()
	return sec.RecordTo(e)
}

// read returns the time between start and stop, whose work is done; without a clock
// what the host measured.
func (c *clock) read(host time.Duration) (time.Duration, error) {
	if c == nil {
		return host, nil
	}
	return c.to.Elapsed(c.from)
}
