package main

import (
	"context"
	"fmt"

	"github.com/goccl/goccl/bucket"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/examples/ddp/options"
	"github.com/goccl/goccl/examples/ddp/report"
	"github.com/goccl/goccl/examples/ddp/train"
)

// place is where a rank computes: the CPU, or a GPU.
type place interface {
	// join sets up how the job communicates.
	join(cfg *dist.Config)
	// engine makes a model for batch samples; ctx bounds all waiting of it.
	engine(ctx context.Context, seed uint64, batch int) (engine, error)
	// averager makes what stands between such a model and the reducer.
	averager(e engine) (averager, error)
	// describe notes where the run took place, in words.
	describe(run *report.Run)
	close() error
}

// engine is a model whose values and gradients communication can get at.
type engine interface {
	train.Engine
	value(i int) (device.Buffer, error)
	// setGrad has gradient i written to view.
	setGrad(i int, view device.Buffer) error
	close() error
}

// averager says how a step of an engine and the reducer go together, and where the
// time of the step goes.
type averager interface {
	// configure completes what the reducer is made with.
	configure(cfg *bucket.Config)
	// begin marks the begin of a step, and backward that of its backward pass.
	begin() error
	backward(r *bucket.Reducer)
	// ready announces gradient i.
	ready(r *bucket.Reducer, i int) error
	// finish ends a step: what the engine does next sees averages. wait says that the
	// step is to be over when finish returns.
	finish(ctx context.Context, r *bucket.Reducer, wait bool) error
	// took says where the time went, of the last step that is over.
	took(ctx context.Context, r *bucket.Reducer) (timing, error)
	close() error
}

// openPlace opens the place that o asks for. index is this rank's GPU; share lets it be
// that of another rank, too.
func openPlace(o options.Options, index int, share bool) (place, error) {
	switch o.Device {
	case options.Host:
		return cpu{}, nil
	case options.CUDA:
		return openGPU(o, index, share)
	}
	return nil, fmt.Errorf("ddp: no device %q", o.Device)
}
