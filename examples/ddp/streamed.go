package main

import (
	"context"
	"errors"
	"time"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/bucket"
	"github.com/goccl/goccl/device/cuda"
	processgroup "github.com/goccl/goccl/process_group"
)

// streamed is the averager of a GPU. Gradients are announced when their kernels have
// been queued, the compute stream waits for the averages, and the host goes on. Times
// are the GPU's: of timers on the compute stream, and on a stream that only watches when
// buckets are done.
type streamed struct {
	dev     *cuda.Device
	compute *cuda.Stream
	watch   *cuda.Stream
	steps   [2]clocks // of the step under way and the one before, by turns
	turn    int
	works   []processgroup.Work // of the buckets of this step
	waited  bool                // the last step was over when finish returned
	err     error               // of a timer within Ready
}

// clocks are the timers of one step.
type clocks struct {
	backward, computed, joined *cuda.Event
	full, done                 []*cuda.Event // of each bucket
	buckets                    int           // how many were started
	began                      time.Time     // on the host
	total                      time.Duration // 0: the host did not wait
	used                       bool
}

var (
	_ averager        = (*streamed)(nil)
	_ bucket.Hook     = (*streamed)(nil)
	_ bucket.Preparer = (*streamed)(nil)
)

func newStreamed(dev *cuda.Device, compute *cuda.Stream) (*streamed, error) {
	s := &streamed{dev: dev, compute: compute}
	var err error
	if s.watch, err = dev.Stream(0); err != nil {
		return nil, err
	}
	for i := range s.steps {
		c := &s.steps[i]
		for _, e := range []**cuda.Event{&c.backward, &c.computed, &c.joined} {
			if *e, err = dev.NewTimer(); err != nil {
				return nil, errors.Join(err, s.close())
			}
		}
	}
	return s, nil
}

// String is what ranks compare.
func (s *streamed) String() string { return "average with timers" }

func (s *streamed) configure(cfg *bucket.Config) { cfg.Device, cfg.Hook = s.dev, s }

// Prepare makes timers for buckets.
func (s *streamed) Prepare(_ context.Context, _ *processgroup.Group, bs []*bucket.Bucket) error {
	for i := range s.steps {
		for _, list := range []*[]*cuda.Event{&s.steps[i].full, &s.steps[i].done} {
			for len(*list) < len(bs) {
				e, err := s.dev.NewTimer()
				if err != nil {
					return err
				}
				*list = append(*list, e)
			}
		}
	}
	for len(s.works) < len(bs) {
		s.works = append(s.works, processgroup.Work{})
	}
	return nil
}

// Start averages the bucket, and notes when the GPU comes to where it is full.
func (s *streamed) Start(_ context.Context, b *bucket.Bucket) processgroup.Work {
	c := &s.steps[s.turn]
	s.err = errors.Join(s.err, record(s.compute, c.full[b.Index()]))
	c.buckets = b.Index() + 1
	w := b.Group().AllReduce(b.Buffer(), goccl.Avg, b.Options()...)
	s.works[b.Index()] = w
	return w
}

func (s *streamed) begin() error {
	c := &s.steps[s.turn]
	c.began, c.buckets, c.total, c.used = time.Now(), 0, 0, true
	s.err = nil
	return nil
}

func (s *streamed) backward(r *bucket.Reducer) {
	r.Begin()
	s.err = errors.Join(s.err, record(s.compute, s.steps[s.turn].backward))
}

func (s *streamed) ready(r *bucket.Reducer, i int) error {
	return r.Ready(i, processgroup.OnStream(s.compute))
}

func (s *streamed) finish(ctx context.Context, r *bucket.Reducer, wait bool) error {
	c := &s.steps[s.turn]
	if err := record(s.compute, c.computed); err != nil {
		return err
	}
	if err := r.FinishOn(s.compute); err != nil {
		return err
	}
	if err := errors.Join(s.err, record(s.compute, c.joined)); err != nil {
		return err
	}
	for b := range c.buckets {
		if err := errors.Join(s.works[b].Join(s.watch), record(s.watch, c.done[b])); err != nil {
			return err
		}
	}
	s.turn, s.waited = 1-s.turn, wait
	if !wait {
		return nil
	}
	err := errors.Join(s.compute.Sync(ctx), s.watch.Sync(ctx))
	c.total = time.Since(c.began)
	return err
}

// took is that of the last step if the host has waited for it, and else of the one
// before, which is over.
func (s *streamed) took(ctx context.Context, _ *bucket.Reducer) (timing, error) {
	c := &s.steps[s.turn]
	if s.waited {
		c = &s.steps[1-s.turn]
	}
	t := timing{total: c.total}
	if !c.used {
		return t, nil
	}
	since := func(e, from *cuda.Event) (time.Duration, error) {
		if err := e.Wait(ctx); err != nil {
			return 0, err
		}
		return e.Elapsed(from)
	}
	var err error
	if t.blocked, err = since(c.joined, c.computed); err != nil {
		return t, err
	}
	for b := range c.buckets {
		full, err := since(c.full[b], c.backward)
		if err != nil {
			return t, err
		}
		done, err := since(c.done[b], c.backward)
		if err != nil {
			return t, err
		}
		t.buckets = append(t.buckets, span{full, full, max(full, done)})
	}
	return t, nil
}

func (s *streamed) close() error {
	var errs []error
	if s.watch != nil {
		errs = append(errs, s.watch.Close())
	}
	for i := range s.steps {
		c := &s.steps[i]
		for _, e := range append(append([]*cuda.Event{c.backward, c.computed, c.joined}, c.full...), c.done...) {
			if e != nil {
				e.Release()
			}
		}
	}
	return errors.Join(errs...)
}

func record(s *cuda.Stream, e *cuda.Event) error {
	sec, err := s.Enter()
	if err != nil {
		return err
	}
	defer sec.Leave()
	return sec.RecordTo(e)
}
