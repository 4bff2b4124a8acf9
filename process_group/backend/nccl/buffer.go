package nccl

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/process_group/backend/nccl/libnccl"
)

// buffers orders the making and freeing of registered memory: NCCL allows one call
// at a time on a communicator.
type buffers struct{ mu sync.Mutex }

// NewBuffer implements processgroup.Allocator: memory of the group's GPU, made by
// NCCL and registered with it.
func (b *Backend) NewBuffer(n int, d goccl.DType) (device.Buffer, func() error, error) {
	b.buffers.mu.Lock()
	defer b.buffers.mu.Unlock()
	bytes := max(n*d.Size(), 1)
	var undo []func() error
	free := func() error {
		b.buffers.mu.Lock()
		defer b.buffers.mu.Unlock()
		if b.engine.cause.Load() != nil { // registrations went with the communicator
			<-b.engine.over
			undo = undo[:1]
			return b.gpu.current(func() error { return backwards(undo) })
		}
		return b.exclusively(func() error { return backwards(undo) })
	}
	var addr uintptr
	err := b.exclusively(func() error {
		var err error
		if addr, err = b.lib.Alloc(bytes); err != nil {
			return err
		}
		undo = append(undo, func() error { return b.lib.Free(addr) })
		unregister, err := b.register(addr, bytes)
		if err != nil {
			return errors.Join(err, backwards(undo))
		}
		undo = append(undo, unregister)
		return nil
	})
	if err != nil {
		return device.Buffer{}, nil, fmt.Errorf("buffer of %d bytes: %w", bytes, err)
	}
	if err := b.zero(addr, bytes); err != nil {
		return device.Buffer{}, nil, errors.Join(err, b.exclusively(func() error { return backwards(undo) }))
	}
	return device.FromPointer(addr, n, d, b.words.id, b), free, nil
}

func backwards(undo []func() error) error {
	var errs []error
	for i := len(undo) - 1; i >= 0; i-- {
		errs = append(errs, undo[i]())
	}
	return errors.Join(errs...)
}

// register tells NCCL of memory. The caller has the turn.
func (b *Backend) register(addr uintptr, bytes int) (func() error, error) {
	if !b.cfg.Symmetric {
		var handle uintptr
		err := b.command(func(c *libnccl.Comm) (err error) {
			handle, err = c.Register(addr, bytes)
			return err
		})
		return func() error {
			return b.command(func(c *libnccl.Comm) error { return c.Deregister(handle) })
		}, err
	}
	var window *uintptr
	err := b.command(func(c *libnccl.Comm) (err error) {
		window, err = c.RegisterWindow(addr, bytes)
		return err
	})
	return func() error {
		return b.command(func(c *libnccl.Comm) error { return c.DeregisterWindow(*window) })
	}, err
}

// zero clears memory of the device.
func (b *Backend) zero(addr uintptr, bytes int) error {
	sec, err := b.gpu.own.Enter()
	if err != nil {
		return err
	}
	err = sec.Fill(addr, 0, bytes)
	sec.Leave()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), b.cfg.Timeout)
	defer cancel()
	return b.gpu.own.Sync(ctx)
}
