package bucket

import (
	"context"
	"fmt"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
)

// activity is what Config.Uneven exchanges in every step: how many ranks still
// have input.
type activity struct {
	count     []int64
	work      op
	announced bool
}

// announceActive starts the count of a step, before its first bucket. A rank
// that has input adds 1.
func (r *Reducer) announceActive(mine int64) {
	if !r.cfg.Uneven || r.active.announced {
		return
	}
	if r.active.count == nil {
		r.active.count = make([]int64, 1)
	}
	r.active.announced = true
	r.active.count[0] = mine
	if r.dev != nil {
		r.active.work = op{aside: r.startAside([]byte{byte(mine)})}
		return
	}
	r.active.work = op{work: r.g.AllReduce(device.SliceOf(r.active.count), goccl.Sum, activeLabel)}
}

// countActive waits for the count.
func (r *Reducer) countActive(ctx context.Context) (int, error) {
	if !r.active.announced {
		return r.g.Size(), nil
	}
	if err := r.active.work.Wait(ctx); err != nil {
		return 0, fmt.Errorf("%w\n\tin the count of ranks with input", err)
	}
	if a := r.active.work.aside; a != nil {
		r.active.count[0] = 0
		for _, one := range a.all {
			r.active.count[0] += int64(one[0])
		}
	}
	return int(r.active.count[0]), nil
}

// Join is for a rank that has run out of input while others go on; it needs
// Config.Uneven. The rank takes part in their steps with gradients of zero until
// all ranks are in Join, and then returns on all of them. The averages stay
// divided by the size of the group. After each step it calls step, unless nil,
// with the averages in place, so that the rank's optimiser keeps its parameters
// equal to the others'. It stands between steps. An error of step fails the
// group. ctx bounds the whole.
//
// Without Config.Uneven a rank that stops early leaves the others waiting until
// the group's Timeout, whose error names it.
func (r *Reducer) Join(ctx context.Context, step func() error) error {
	const name = "bucket.Join"
	if !r.cfg.Uneven {
		return r.error(name, fmt.Errorf("%w: Config.Uneven is not set, so the other ranks do not expect it", goccl.ErrInvalid))
	}
	for {
		more, err := r.shadow(ctx, name)
		if err != nil || !more {
			return err
		}
		if step == nil {
			continue
		}
		if err := step(); err != nil {
			return r.fail(name, err)
		}
	}
}

// shadow takes part in one step with zeros. more is false when no rank has
// input.
func (r *Reducer) shadow(ctx context.Context, name string) (more bool, err error) {
	if err := r.enter(name); err != nil {
		return false, err
	}
	defer r.run.finish.Unlock()
	if !r.e.idle() || r.run.noComm {
		return false, r.error(name, fmt.Errorf("%w: Join stands between steps, and not in a NoComm layout", goccl.ErrInvalid))
	}
	r.announceActive(0)
	n, err := r.countActive(ctx)
	if err != nil {
		return false, r.fail(name, err)
	}
	if n == 0 {
		r.active.announced = false
		return false, nil
	}
	for _, a := range r.arenas {
		if err := r.clear(a); err != nil {
			return false, r.fail(name, err)
		}
	}
	if r.cfg.FindUnused {
		clear(r.use.mask)
	}
	for b := range r.buckets {
		for _, i := range r.buckets[b].members {
			if err := r.e.announce(i); err != nil {
				return false, r.fail(name, err)
			}
		}
	}
	if err := r.complete(ctx); err != nil {
		return false, r.fail(name, err)
	}
	return true, nil
}
