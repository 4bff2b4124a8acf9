package nccl

import (
	"fmt"
	"time"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/process_group/backend/nccl/libnccl"
)

// This file makes the calls on a communicator that are no operations: splits and
// registrations.

// command makes a call on the communicator and returns when NCCL is done with it,
// for a function that exclusively runs. What the call itself returns does not tell:
// on a communicator that does not block, ncclCommSplit and ncclCommWindowRegister
// return ncclSuccess when NCCL's thread has only begun, and until it is done, any
// call but the question what it does is ncclInvalidArgument. So that question is
// asked before the call and after.
func (b *Backend) command(call func(c *libnccl.Comm) error) error {
	if err := b.engine.settled(b.cfg.Timeout); err != nil {
		return err
	}
	var err error
	b.gpu.alone(func() { err = call(b.gpu.comm) })
	if err != nil {
		return err
	}
	return b.engine.settled(b.cfg.Timeout)
}

// exclusively runs fn with the engine's turn and the device current. NCCL is then
// done with all operations that were started before, which may still run on the
// device.
func (b *Backend) exclusively(fn func() error) error {
	for began := time.Now(); !b.engine.borrow(); time.Sleep(time.Millisecond) {
		if f := b.engine.cause.Load(); f != nil {
			return f.err
		}
		if time.Since(began) > b.cfg.Timeout {
			return b.engine.late("operations before it do not start", b.cfg.Timeout)
		}
	}
	defer b.engine.drive(false)
	return b.gpu.current(fn)
}

// borrow takes the turn when it is free and nothing is queued. Who has it calls
// drive to give it back.
func (e *engine) borrow() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.held {
		return false
	}
	e.held = true
	return true
}

// settled is settle for who has borrowed the turn: nil when NCCL is done. An abort is
// an error, and so is a NCCL that failed or is not done within limit: of it nothing
// can be asked any more, so that what is started later fails too.
func (e *engine) settled(limit time.Duration) error {
	if e.broken != nil {
		return e.broken
	}
	r, err := e.settle(limit)
	switch f := e.cause.Load(); {
	case f != nil:
		return f.err
	case err == nil && r == libnccl.Success:
		return nil
	case err == nil:
		err = fmt.Errorf("%w: NCCL is not done after %v with a call that all ranks make: some did not, or its connections do not come up", goccl.ErrTimeout, limit)
	}
	e.broken = err
	return err
}
