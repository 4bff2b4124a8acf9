package bucket

import (
	"fmt"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
)

// FinishOn is Finish for gradients on a device: work queued on s from now on comes
// after the averages, and the host does not wait. It returns when all operations have
// been started, with the errors of Finish about gradients that are missing; what goes
// wrong on the device ends the group, so that the next step is refused with the cause.
//
// Gradients of the next step may be written by work that comes after s. The step after
// which the buckets are laid out anew is the one exception: that waits for the device.
// Stats do not know when the buckets of such a step were done.
//
// It is refused, with the step still open, for gradients in host memory, for Hooks that
// are Finishers, and for Config.FindUnused and Config.Uneven, whose results the host
// must see.
func (r *Reducer) FinishOn(s device.Stream) error {
	const name = "bucket.FinishOn"
	if err := r.enter(name); err != nil {
		return err
	}
	defer r.run.finish.Unlock()
	if err := r.canFinishOn(s); err != nil {
		return r.error(name, err)
	}
	if r.e.noSync.Load() {
		return nil
	}
	if err := r.completeOn(s); err != nil {
		return r.fail(name, err)
	}
	return nil
}

func (r *Reducer) canFinishOn(s device.Stream) error {
	_, finishes := r.cfg.Hook.(Finisher)
	switch {
	case s == nil:
		return fmt.Errorf("%w: FinishOn needs a stream", goccl.ErrInvalid)
	case r.dev == nil:
		return fmt.Errorf("%w: the gradients are in host memory; use Finish", goccl.ErrUnsupported)
	case r.cfg.FindUnused || r.cfg.Uneven || finishes:
		return fmt.Errorf("%w: FindUnused, Uneven and hooks with a Finish need the host; use Finish", goccl.ErrUnsupported)
	}
	return nil
}

// completeOn is complete with s in the place of the host.
func (r *Reducer) completeOn(s device.Stream) error {
	if err := r.endBackward(); err != nil {
		return err
	}
	d := r.dev
	d.last, d.late = s, d.late[:0] // what was late before these is done when they are
	for ; r.run.settled < len(r.buckets); r.run.settled++ {
		b := r.run.settled
		rebuild, err := r.e.pass(b, func(w op) error { return w.Join(s) })
		if err != nil {
			return r.buckets[b].explain(err)
		}
		if err := r.copyBack(b, s); err != nil {
			return err
		}
		d.late = append(d.late, r.works[b])
		r.run.rebuild = r.run.rebuild || rebuild
	}
	return r.closeStep()
}
