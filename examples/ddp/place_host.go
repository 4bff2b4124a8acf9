package main

import (
	"context"
	"time"

	"github.com/goccl/goccl/bucket"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/examples/ddp/report"
	"github.com/goccl/goccl/examples/ddp/train"
	"github.com/goccl/goccl/process_group/dense"
)

// cpu is the place of ranks without a GPU.
type cpu struct{}

func (cpu) join(*dist.Config)    {}
func (cpu) describe(*report.Run) {}
func (cpu) close() error         { return nil }

func (cpu) engine(_ context.Context, seed uint64, batch int) (engine, error) {
	h, err := train.NewHost(batch, seed)
	if err != nil {
		return nil, err
	}
	return onHost{h}, nil
}

func (cpu) averager(engine) (averager, error) { return &waiting{}, nil }

// onHost is a model of gorgonia tensors. Its gradients become tensors over their places
// in the buckets.
type onHost struct{ *train.Host }

func (h onHost) value(i int) (device.Buffer, error) { return dense.Buffer(h.Model().Params()[i].Value) }

func (h onHost) setGrad(i int, view device.Buffer) error {
	g, err := dense.Tensor(view, h.Model().Params()[i].Value.Shape()...)
	if err != nil {
		return err
	}
	return h.Model().SetGrad(i, g)
}

func (h onHost) close() error { return nil }

// waiting is the averager of the CPU, where everything has been done when a call
// returns. The reducer keeps the times.
type waiting struct{ began, ended time.Time }

func (w *waiting) configure(*bucket.Config) {}

func (w *waiting) begin() error {
	w.began = time.Now()
	return nil
}

func (w *waiting) backward(r *bucket.Reducer) { r.Begin() }

func (w *waiting) ready(r *bucket.Reducer, i int) error { return r.Ready(i) }

func (w *waiting) finish(ctx context.Context, r *bucket.Reducer, _ bool) error {
	err := r.Finish(ctx)
	w.ended = time.Now()
	return err
}

func (w *waiting) took(_ context.Context, r *bucket.Reducer) (timing, error) {
	stats := r.Stats()
	t := timing{total: w.ended.Sub(w.began), blocked: stats.Blocked}
	for _, b := range stats.Buckets {
		t.buckets = append(t.buckets, span{b.Ready, b.Launched, b.Done})
	}
	return t, nil
}

func (w *waiting) close() error { return nil }
