package bucket

import (
	"context"
	"fmt"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/process_group"
)

// usage is what Config.FindUnused exchanges: which parameters had a gradient in
// this step, on this rank before the exchange and on any rank after it.
type usage struct {
	mask    []uint8 // 1: used
	last    []uint8 // of the last step, over all ranks
	work    op
	started bool
}

func (u *usage) reset(n int) {
	if u.mask == nil {
		u.mask = make([]uint8, n)
		u.last = make([]uint8, n)
	}
	for i := range u.mask {
		u.mask[i] = 1
	}
	u.started = false
}

// exchangeUsage starts the exchange; it comes after all buckets.
func (r *Reducer) exchangeUsage() {
	if !r.cfg.FindUnused || r.use.started {
		return
	}
	r.use.started = true
	if r.dev != nil {
		r.use.work = op{aside: r.startAside(r.use.mask)}
		return
	}
	r.use.work = op{work: r.g.AllReduce(device.SliceOf(r.use.mask), goccl.Max, usageLabel)}
}

// learnUsage waits for it. Afterwards mask is the same on all ranks.
func (r *Reducer) learnUsage(ctx context.Context) error {
	if r.use.started {
		if err := r.use.work.Wait(ctx); err != nil {
			return fmt.Errorf("%w\n\tin the exchange of used parameters", err)
		}
		if a := r.use.work.aside; a != nil {
			for _, mask := range a.all {
				for i := range r.use.mask {
					r.use.mask[i] = max(r.use.mask[i], mask[i])
				}
			}
		}
	}
	copy(r.use.last, r.use.mask)
	return nil
}

// Used reports whether any rank announced gradient i in the last step. Without
// Config.FindUnused every step uses all.
//
// With it, a gradient that no rank announced keeps what it had when it is in
// Param.Grad, and is zero in a View: the optimiser should pass it over. One that
// some ranks announced is the sum of theirs divided by the size of the group.
func (r *Reducer) Used(i int) bool {
	return i >= 0 && i < len(r.use.last) && r.use.last[i] != 0 && !r.items[i].frozen
}

var (
	usageLabel  = processgroup.Label("bucket: used parameters")
	activeLabel = processgroup.Label("bucket: ranks with input")
)
