package bucket

import (
	"context"
	"fmt"
	"time"

	"github.com/goccl/goccl"
)

// finish says that the backward pass is over and returns when every bucket has
// been started. A machine in NoSync does nothing.
func (e *engine[W]) finish() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.times.begin(e.clock)
	acts := e.m.finish()
	for _, a := range acts { // the machine fills slots before it launches what holds them
		var err error
		switch a.kind {
		case actZero:
			err = e.fx.zero(a.index)
		case actFill:
			err = e.fx.fill(a.index)
		}
		if err != nil {
			e.m.fail(err)
			return err
		}
	}
	if err := e.perform(acts); err != nil {
		return err
	}
	e.drain()
	for e.starting {
		e.idleCond.Wait()
	}
	return nil
}

// settle waits for bucket b, which has been started, and feeds the result to the
// machine. When ctx ends first, the step is still open and settle may be called
// again. rebuild is true once, after the last bucket of the step in which the
// ready order was recorded.
func (e *engine[W]) settle(ctx context.Context, b int) (rebuild bool, err error) {
	e.mu.Lock()
	if b >= e.started {
		e.mu.Unlock()
		return false, fmt.Errorf("%w: bucket %d was not started", goccl.ErrInvalid, b)
	}
	w := e.fx.work(b)
	e.mu.Unlock()
	if err := w.Wait(ctx); err != nil {
		if ctx.Err() != nil {
			return false, err
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.m.reduced(b, err)
		return false, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.observed <= b {
		e.observe(b)
	}
	return e.reduced(b)
}

// pass is settle for an operation that a stream waits for instead of the host: join
// arranges that. What becomes of it afterwards the group tells at the next call.
func (e *engine[W]) pass(b int, join func(w W) error) (rebuild bool, err error) {
	e.mu.Lock()
	if b >= e.started {
		e.mu.Unlock()
		return false, fmt.Errorf("%w: bucket %d was not started", goccl.ErrInvalid, b)
	}
	w := e.fx.work(b)
	e.mu.Unlock()
	err = join(w)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil {
		e.m.reduced(b, err)
		return false, err
	}
	return e.reduced(b)
}

// reduced feeds the end of bucket b to the machine. The lock is held.
func (e *engine[W]) reduced(b int) (rebuild bool, err error) {
	for _, a := range e.m.reduced(b, nil) {
		switch a.kind {
		case actRebuild:
			rebuild = true
		case actFail:
			return false, e.m.err
		}
	}
	return rebuild, nil
}

// next opens the next step, with other buckets when given.
func (e *engine[W]) next(buckets [][]int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if buckets != nil {
		e.m.relayout(buckets)
	} else {
		e.m.begin()
	}
	e.allowed, e.started, e.observed = 0, 0, 0
	e.times.reset(len(e.m.members))
	e.step.Add(1)
}

// fail ends the step with err unless it has failed before.
func (e *engine[W]) fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.m.fail(err)
}

// setNoSync switches local accumulation.
func (e *engine[W]) setNoSync(on bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.m.err != nil {
		return e.m.err
	}
	if err := e.m.setNoSync(on); err != nil {
		return err
	}
	e.noSync.Store(on)
	return nil
}

// begin marks the begin of a step for the timeline.
func (e *engine[W]) begin() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.times.begin(e.clock)
}

// timeline returns the times of the step that has ended, valid until next, and
// its length.
func (e *engine[W]) timeline() ([]bucketTimes, time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.times.bucket, e.times.since(e.clock)
}

func (e *engine[W]) idle() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.m.idle()
}

func (e *engine[W]) readyOrder() []int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.m.readyOrder()
}

func (e *engine[W]) setRecord(on bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.m.mode.record = on
}

func (e *engine[W]) setHold(on bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.m.mode.hold = on
}

// quiesce waits for every operation that was started and not settled.
func (e *engine[W]) quiesce(ctx context.Context) error {
	e.mu.Lock()
	for e.starting {
		e.idleCond.Wait()
	}
	var left []W
	for b := 0; b < e.started; b++ {
		if !e.m.isDone[b] {
			left = append(left, e.fx.work(b))
		}
	}
	e.mu.Unlock()
	var first error
	for _, w := range left {
		if err := w.Wait(ctx); err != nil && first == nil {
			first = err
		}
	}
	return first
}
