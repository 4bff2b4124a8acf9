package gpu

import (
	"fmt"

	"github.com/goccl/goccl/device/cuda"
	"github.com/goccl/goccl/device/kernels/abi"
)

// Input implements train.Engine: pinned memory. It waits until the device has read the
// samples before.
func (e *Engine) Input() ([]float32, []uint8, error) {
	return e.in.host, e.in.marks, e.in.read.Wait(e.ctx)
}

// Gradients implements train.Engine.
func (e *Engine) Gradients(started func(), ready func(i int)) error {
	if e.work.stale {
		if err := e.work.build(e); err != nil {
			return err
		}
	}
	if err := e.lossOf(); err != nil {
		return err
	}
	if started != nil {
		started()
	}
	for _, p := range e.work.backward {
		if err := e.queue(p.launches); err != nil {
			return err
		}
		if p.ready >= 0 && ready != nil {
			ready(p.ready)
		}
	}
	return nil
}

// lossOf queues the forward pass over new samples, and the way of its loss back to the
// host.
func (e *Engine) lossOf() error {
	return e.section(func(sec cuda.Section) error {
		if err := e.in.queue(sec); err != nil {
			return err
		}
		if err := launch(sec, e.work.forward); err != nil {
			return err
		}
		if err := launch(sec, e.work.loss); err != nil {
			return err
		}
		if err := sec.Copy(e.xent.read.Addr(), e.xent.sum, sumBytes); err != nil {
			return err
		}
		return sec.RecordTo(e.xent.ended)
	})
}

// Loss implements train.Engine. It waits for the forward pass, not for what was queued
// behind it.
func (e *Engine) Loss() (float64, error) {
	if err := e.xent.ended.Wait(e.ctx); err != nil {
		return 0, err
	}
	return e.xent.sumOf().Loss / float64(e.batch), nil
}

// Update implements train.Engine.
func (e *Engine) Update(rate float64) error {
	return e.section(func(sec cuda.Section) error {
		for i := range e.work.update {
			u := &e.work.update[i]
			u.args.Rate = float32(rate)
			copy(u.launch.Args(), abi.Bytes(&u.args))
			if err := sec.Launch(u.launch); err != nil {
				return fmt.Errorf("update of %s: %w", e.params[i].name, err)
			}
		}
		return nil
	})
}

// Predict implements train.Engine. The kernel of the loss says which class is best.
func (e *Engine) Predict(guess []uint8) error {
	if err := e.lossOf(); err != nil {
		return err
	}
	err := e.section(func(sec cuda.Section) error {
		if err := sec.Copy(e.xent.read.Addr()+uintptr(sumBytes), e.xent.row, rowBytes*e.batch); err != nil {
			return err
		}
		return sec.RecordTo(e.done)
	})
	if err != nil {
		return err
	}
	if err := e.done.Wait(e.ctx); err != nil {
		return err
	}
	for i := range min(len(guess), e.batch) {
		var row abi.XentRow
		copy(abi.Bytes(&row), e.xent.read.Host()[sumBytes+rowBytes*i:])
		guess[i] = uint8(row.Best)
	}
	return nil
}

// queue launches in a section of its own: between two of them others may queue on the
// stream.
func (e *Engine) queue(list []*cuda.Launch) error {
	return e.section(func(sec cuda.Section) error { return launch(sec, list) })
}

func (e *Engine) section(fn func(sec cuda.Section) error) error {
	sec, err := e.stream.Enter()
	if err != nil {
		return err
	}
	defer sec.Leave()
	return fn(sec)
}

func launch(sec cuda.Section, list []*cuda.Launch) error {
	for _, l := range list {
		if err := sec.Launch(l); err != nil {
			return fmt.Errorf("kernel %s: %w", l.Kernel().Name(), err)
		}
	}
	return nil
}
