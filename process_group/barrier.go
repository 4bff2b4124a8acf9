package processgroup

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
)

// Barrier returns when all ranks have called it. It runs in order with the other
// operations of the group. When ctx ends before, the barrier itself goes on, as
// any operation does.
func (g *Group) Barrier(ctx context.Context) error {
	s := g.settings(nil)
	x, w := g.call(goccl.Barrier, &s)
	if x != nil {
		w = g.launch(x)
	}
	return w.Wait(ctx)
}

// MonitoredBarrier returns when all ranks have called it, and else names every
// one that has not: the Missing of its *goccl.Error, which is a
// goccl.ErrTimeout. It goes through the control plane, so it tells of ranks whose
// collectives are stuck, takes no part in their order, and does not fail the
// group. Without a deadline in ctx it waits for the group's timeout.
func (g *Group) MonitoredBarrier(ctx context.Context) error {
	if g.cfg.Size == 1 {
		return ctx.Err()
	}
	if cause := g.cause(); cause != nil {
		return cause
	}
	ctx, cancel := context.WithTimeout(ctx, g.cfg.Timeout)
	defer cancel()
	stop := context.AfterFunc(g.failure.ctx, cancel)
	defer stop()
	if g.cfg.Control == nil {
		return fmt.Errorf("%w: group %q has no control plane to ask; use Barrier", goccl.ErrUnsupported, g.cfg.Name)
	}
	missing, err := g.cfg.Control.MonitoredBarrier(ctx)
	switch cause := g.cause(); {
	case err == nil && len(missing) == 0:
		return nil
	case cause != nil:
		return cause
	case err == nil || errors.Is(err, context.DeadlineExceeded):
		err = goccl.ErrTimeout
	}
	e := goccl.NewError("monitored barrier", err)
	e.Group, e.Rank, e.Missing = g.cfg.Name, g.cfg.Rank, missing
	e.Hint = "these ranks have not called MonitoredBarrier"
	if len(missing) == 0 {
		e.Hint = ""
	}
	return e
}

// Agree returns true on all ranks when flag is true on any, so that all take the
// same branch at the same step: stop, save, change the learning rate. It is a
// collective.
func (g *Group) Agree(ctx context.Context, flag bool) (bool, error) {
	word := make([]uint8, 1)
	if flag {
		word[0] = 1
	}
	if _, ok := g.backend.(Exchanger); ok {
		all, err := g.Exchange(ctx, word)
		return slices.ContainsFunc(all, func(b []byte) bool { return len(b) == 1 && b[0] != 0 }), err
	}
	if err := g.AllReduce(device.SliceOf(word), goccl.Max, Label("agree")).Wait(ctx); err != nil {
		return false, err
	}
	return word[0] != 0, nil
}
