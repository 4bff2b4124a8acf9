package bucket

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/process_group"
)

// Finish ends a step: it blocks until every bucket is reduced or ctx ends, and
// puts the averages where the gradients came from, Param.Grad or View; FinishOn lets a
// stream wait instead. When
// gradients are missing it returns at once with an ErrInvalid that names them,
// and the other ranks get the same text; with Config.FindUnused they count as
// zero instead. When ctx ends first the step stays open and Finish may be called
// again. After any other error the Reducer is of no more use. All ranks call it
// for each step.
func (r *Reducer) Finish(ctx context.Context) error {
	const name = "bucket.Finish"
	if err := r.enter(name); err != nil {
		return err
	}
	defer r.run.finish.Unlock()
	if r.e.noSync.Load() {
		return nil
	}
	if err := r.complete(ctx); err != nil {
		return r.stepError(ctx, name, err)
	}
	return nil
}

// Buckets ends the backward pass as Finish does and yields each bucket when its
// averages are in place, in order, so that an optimiser can work on one while
// the next is on the wire. Call Finish afterwards: it tells what went wrong when
// the sequence ended early, and opens the next step. Not for Config.FindUnused,
// with which results are known only at the end: the sequence is then empty.
func (r *Reducer) Buckets() iter.Seq[*Bucket] {
	return func(yield func(*Bucket) bool) {
		if r.cfg.FindUnused || r.enter("bucket.Buckets") != nil {
			return
		}
		defer r.run.finish.Unlock()
		ctx := r.g.Context()
		if r.e.noSync.Load() || r.endBackward() != nil {
			return
		}
		for r.run.settled < len(r.buckets) {
			b := r.run.settled
			if r.settleNext(ctx) != nil || r.dev.flush(ctx) != nil || !yield(&r.buckets[b]) {
				return
			}
		}
	}
}

// Reduce does a whole step with gradients that are all there: grads[i] is
// averaged in place. Addresses may differ from step to step; the entries of
// frozen parameters are ignored. It blocks as Finish does and returns its errors;
// when ctx ended, Finish goes on with the same gradients. Options are those of Ready.
// Not inside NoSync.
func (r *Reducer) Reduce(ctx context.Context, grads []device.Buffer, o ...processgroup.Option) error {
	const name = "bucket.Reduce"
	if r.e.noSync.Load() {
		return r.error(name, fmt.Errorf("%w: Reduce inside NoSync", goccl.ErrInvalid))
	}
	if len(grads) != len(r.params) {
		return r.fail(name, fmt.Errorf("%w: %d gradients for %d parameters", goccl.ErrInvalid, len(grads), len(r.params)))
	}
	for i, p := range r.params {
		if p.item.frozen {
			continue
		}
		g := grads[i]
		if err := g.Check(); err != nil {
			return r.fail(name, fmt.Errorf("gradient of %q: %w", p.name, err))
		}
		if g.Count != p.count || g.DType != p.item.dtype || g.Device != p.item.device {
			return r.fail(name, fmt.Errorf("%w: gradient of %q is %d x %v on %v, and %d x %v on %v was declared",
				goccl.ErrInvalid, p.name, g.Count, g.DType, g.Device, p.count, p.item.dtype, p.item.device))
		}
		if g.Addr == r.slots[i].Addr {
			g.Addr = 0
		}
		r.grads[i] = g
	}
	r.run.given = true
	for b := range r.buckets {
		for _, i := range r.buckets[b].members {
			if err := r.Ready(i, o...); err != nil {
				return err
			}
		}
	}
	return r.Finish(ctx)
}

// enter takes the place of the one goroutine in Finish.
func (r *Reducer) enter(name string) error {
	if !r.run.finish.TryLock() {
		return r.error(name, fmt.Errorf("%w: another goroutine is in Finish, Buckets, Join, Apply, Restore or Close", goccl.ErrInvalid))
	}
	if r.closing.closed.Load() {
		r.run.finish.Unlock()
		return r.error(name, fmt.Errorf("%w: the reducer", goccl.ErrClosed))
	}
	return nil
}

// complete takes the step from wherever it stands to its end.
func (r *Reducer) complete(ctx context.Context) error {
	if err := r.endBackward(); err != nil {
		return err
	}
	r.stall.arm()
	defer r.stall.disarm()
	for r.run.settled < len(r.buckets) {
		if err := r.settleNext(ctx); err != nil {
			return err
		}
	}
	if err := r.waitExtras(ctx); err != nil {
		return err
	}
	return r.closeStep()
}

// endBackward starts all that has not been started.
func (r *Reducer) endBackward() error {
	if r.run.ended {
		return nil
	}
	if err := r.e.finish(); err != nil {
		return err
	}
	r.run.ended = true
	if !r.run.noComm {
		r.announceActive(1)
		r.exchangeUsage()
	}
	return nil
}

// settleNext waits for the next bucket and puts its result in place.
func (r *Reducer) settleNext(ctx context.Context) error {
	b := r.run.settled
	r.stall.watch(b)
	from := time.Now()
	rebuild, err := r.e.settle(ctx, b)
	r.run.blocked += time.Since(from)
	if err != nil {
		return r.buckets[b].explain(err)
	}
	if f, ok := r.cfg.Hook.(Finisher); ok && !r.run.noComm {
		if err := f.Finish(ctx, &r.buckets[b]); err != nil {
			return fmt.Errorf("%s: %w", r.buckets[b].text, err)
		}
	}
	r.run.rebuild = r.run.rebuild || rebuild
	r.run.settled++
	if r.cfg.FindUnused {
		return nil
	}
	return r.copyBack(b, nil)
}

// copyBack puts the averages of bucket b where their gradients came from: on stream s
// or, with nil, on the own stream of a device, for flush to wait for.
func (r *Reducer) copyBack(b int, s device.Stream) error {
	for _, i := range r.buckets[b].members {
		g := r.grads[i]
		switch {
		case g.Addr == 0 || r.use.mask[i] == 0:
		case r.dev == nil:
			copyHost(g, r.slots[i])
		default:
			to := s
			if to == nil {
				to, r.dev.dirty = r.dev.own, true
			}
			if err := r.dev.copy(g, r.slots[i], to); err != nil {
				return err
			}
		}
	}
	return nil
}

// waitExtras waits for the small operations that some configurations add.
func (r *Reducer) waitExtras(ctx context.Context) error {
	from := time.Now()
	defer func() { r.run.blocked += time.Since(from) }()
	if _, err := r.countActive(ctx); err != nil {
		return err
	}
	if err := r.learnUsage(ctx); err != nil {
		return err
	}
	if r.cfg.FindUnused {
		for b := range r.buckets {
			if err := r.copyBack(b, nil); err != nil {
				return err
			}
		}
	}
	return r.dev.flush(ctx)
}

// closeStep notes the times, opens the next step, and rebuilds when that is due.
// It takes no context: a step is over on all ranks or on none, and what it waits
// for is bounded by the group's Timeout.
func (r *Reducer) closeStep() error {
	r.run.step++
	r.snapshot()
	if r.run.given {
		for i, p := range r.params {
			r.grads[i] = p.grad
		}
	}
	r.run.given, r.run.ended, r.run.settled, r.run.blocked = false, false, 0, 0
	r.active.announced = false
	r.use.reset(len(r.params))
	if !r.run.rebuild {
		r.e.next(nil)
		return nil
	}
	r.run.rebuild = false
	return r.rebuild(r.g.Context())
}

// stepError makes the error of a step: one that only says that ctx ended leaves
// the step open, any other fails it on all ranks.
func (r *Reducer) stepError(ctx context.Context, name string, err error) error {
	if ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))) {
		return r.error(name, err)
	}
	return r.fail(name, err)
}
