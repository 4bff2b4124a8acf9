package comm

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
)

// abortGrace is how long what runs on a device may take to end after Abort. The
// kernels of peers, which write into this rank's memory, learn of a failure within
// the same time.
const abortGrace = 2 * time.Second

// testOnDevice is TestLocked for an operation on a device.
func (c *Communicator) testOnDevice(t *Task) (bool, error) {
	if !t.done {
		c.settleDevice()
	}
	if !t.done {
		return false, nil
	}
	return true, t.err
}

// settleDevice notices what has ended. After a failure what has not ended yet does
// so soon: only then are its buffers free, and it ends with the failure. Called with
// mu held, which it may give up meanwhile.
func (c *Communicator) settleDevice() {
	d := c.onDevice
	for t := d.head; t != nil; t = d.head {
		done, err := d.ended(t)
		// After the look: what a failure has ended must not pass for well.
		f := c.failed.Load()
		switch {
		case f != nil && (done || err != nil || time.Since(f.at) > abortGrace):
			d.pop(t, c.taskError(t, f.err))
		case err != nil && !t.broken:
			t.broken = true
			e := goccl.NewError(t.Call.describe(), fmt.Errorf("%v: %w", d.acc.Device().ID(), err))
			e.Rank, e.Group, e.Seq = c.rank, c.name, t.Number
			c.mu.Unlock()
			c.Fail(e)
			c.mu.Lock()
			return
		case err == nil && done && f == nil:
			d.pop(t, nil)
		default:
			return
		}
	}
}

// Turns of a wait for a device: first looking again at once, as a look costs some
// hundred nanoseconds, then sleeping, a while longer when it has been a while.
const (
	deviceHot  = 2000
	deviceNap  = 20 * time.Microsecond
	deviceNaps = 500 // before they grow
	deviceLong = 200 * time.Microsecond
)

// waitOnDevice is WaitLocked for an operation on a device.
func (c *Communicator) waitOnDevice(ctx context.Context, t *Task) error {
	var w watch
	for turn := 0; ; turn++ {
		if done, err := c.testOnDevice(t); done {
			return err
		}
		c.mu.Unlock()
		err := c.passOnDevice(ctx, t, &w, turn)
		c.mu.Lock()
		if err != nil {
			return err
		}
	}
}

func (c *Communicator) passOnDevice(ctx context.Context, t *Task, w *watch, turn int) error {
	if turn < deviceHot {
		runtime.Gosched()
		return nil
	}
	if ctx.Err() != nil {
		return c.interrupted(ctx)
	}
	if c.failed.Load() == nil {
		c.look(t, w)
	}
	nap := deviceNap
	if turn > deviceHot+deviceNaps {
		nap = deviceLong
	}
	time.Sleep(nap)
	return nil
}

// JoinLocked makes s wait for t, which runs on a device; the host does not. The
// caller holds Lock.
func (c *Communicator) JoinLocked(t *Task, s device.Stream) error {
	switch {
	case !t.away:
		return fmt.Errorf("%w: the operation runs on the host, so no stream can wait for it; use Wait", goccl.ErrUnsupported)
	case t.done:
		return t.err
	}
	if f := c.failed.Load(); f != nil {
		return f.err
	}
	return s.WaitEvent(t.end)
}

// lastOnDevice returns the last operation on the device that is not known to have
// ended. Called with mu held.
func (c *Communicator) lastOnDevice() *Task {
	if c.onDevice == nil {
		return nil
	}
	return c.onDevice.tail
}

// leaveDevice frees the accelerator once no rank uses the memory of another: in good
// order all ranks meet first, after a failure it is a matter of time.
func (c *Communicator) leaveDevice(ctx context.Context) error {
	if c.acc == nil {
		return nil
	}
	if f := c.failed.Load(); f != nil {
		if rest := abortGrace - time.Since(f.at); rest > 0 {
			time.Sleep(rest)
		}
	} else if c.session != nil {
		if missing, err := c.session.MonitoredBarrier(ctx); err != nil {
			c.log.Warn("ranks did not come to the end; their kernels are given time to end", "rank", c.rank, "missing", goccl.Ranks(missing), "err", err)
			time.Sleep(abortGrace)
		}
	}
	return c.freeDevice()
}

func (c *Communicator) freeDevice() error {
	if c.acc == nil {
		return nil
	}
	var errs []error
	c.mu.Lock()
	d := c.onDevice
	if d != nil {
		for t := d.head; t != nil; t = d.head {
			d.pop(t, goccl.ErrClosed)
		}
	}
	c.onDevice = nil // whoever still waits finds its operation ended
	c.mu.Unlock()
	if d != nil {
		errs = append(errs, d.stream.Close())
	}
	return errors.Join(append(errs, c.acc.Close())...)
}
