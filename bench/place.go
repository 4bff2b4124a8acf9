package main

import (
	"context"
	"fmt"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/device/cuda"
)

// place is where a rank's buffers lie.
type place interface {
	array(d goccl.DType, n int) (array, error)
	// reset gives all arrays back.
	reset() error
}

// onHost is ordinary memory.
type onHost struct{}

func (onHost) array(d goccl.DType, n int) (array, error) { return newArray(d, n), nil }

func (onHost) reset() error { return nil }

// onGPU is memory of a GPU, of which values are written and read through the host.
type onGPU struct {
	dev *cuda.Device
	all []device.Memory
}

func (p *onGPU) array(d goccl.DType, n int) (array, error) {
	m, err := p.dev.Alloc(max(n*d.Size(), 1))
	if err != nil {
		return nil, err
	}
	p.all = append(p.all, m)
	return &carried{array: newArray(d, n), dev: p.dev, memory: m}, nil
}

func (p *onGPU) reset() error {
	var first error
	for _, m := range p.all {
		if err := m.Free(); first == nil {
			first = err
		}
	}
	p.all = nil
	return first
}

// carried is an array on the host and its place on a GPU. Its values on the host
// are carried over when they change, and read back when they are looked at.
type carried struct {
	array
	dev    *cuda.Device
	memory device.Memory
}

func (c *carried) buffer() device.Buffer {
	b := c.array.buffer()
	return device.FromPointer(c.memory.Addr(), b.Count, b.DType, c.dev.ID(), c.memory)
}

func (c *carried) fill(f func(i int) float64) {
	c.array.fill(f)
	c.write()
}

func (c *carried) copy(from array) {
	c.array.copy(from)
	c.write()
}

// write and read stop the program when a copy fails: the GPU is gone then.

func (c *carried) write() {
	if err := c.dev.Write(context.Background(), c.memory.Addr(), device.HostBytes(c.array.buffer())); err != nil {
		panic(fmt.Sprintf("bench: write to %v: %v", c.dev.ID(), err))
	}
}

func (c *carried) wrong(f func(i int) float64) int {
	if err := c.dev.Read(context.Background(), device.HostBytes(c.array.buffer()), c.memory.Addr()); err != nil {
		panic(fmt.Sprintf("bench: read from %v: %v", c.dev.ID(), err))
	}
	return c.array.wrong(f)
}
