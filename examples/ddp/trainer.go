package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/bucket"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/examples/ddp/mnist"
	"github.com/goccl/goccl/examples/ddp/options"
	"github.com/goccl/goccl/examples/ddp/train"
)

// trainer is one rank's training: the model and what averages its gradients, which
// live in the buckets themselves.
type trainer struct {
	*train.Worker
	engine   engine
	averager averager
	reducer  *bucket.Reducer
	at       []uintptr // where the gradient of each parameter lies
}

// newTrainer makes this rank's trainer from scratch. All ranks of g call it. The
// caller closes it before there is another one on g.
func newTrainer(ctx context.Context, p place, g *dist.Group, set *mnist.Set, o options.Options) (*trainer, error) {
	t := &trainer{}
	if err := t.build(ctx, p, g, set, o); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

func (t *trainer) build(ctx context.Context, p place, g *dist.Group, set *mnist.Set, o options.Options) (err error) {
	if t.engine, err = p.engine(ctx, o.Seed, o.Batch/g.Size()); err != nil {
		return err
	}
	if t.Worker, err = train.NewWorker(t.engine, config(o), set, g.Rank(), g.Size()); err != nil {
		return err
	}
	t.UseShard(shard(g))
	if t.averager, err = p.averager(t.engine); err != nil {
		return err
	}
	params, err := t.parameters()
	if err != nil {
		return err
	}
	cfg := bucket.Config{FirstBytes: o.FirstBucketBytes(), Bytes: o.BucketBytes()}
	t.averager.configure(&cfg)
	if t.reducer, err = bucket.New(ctx, g, params, cfg); err != nil {
		return err
	}
	return t.lookAtBuckets()
}

// parameters tells the reducer of the model. Gradients have no place of their own.
func (t *trainer) parameters() ([]bucket.Param, error) {
	values, err := t.Values()
	if err != nil {
		return nil, err
	}
	t.at = make([]uintptr, len(values))
	params := make([]bucket.Param, len(values))
	for i, v := range values {
		params[i].Name = v.Name
		if params[i].Value, err = t.engine.value(i); err != nil {
			return nil, err
		}
	}
	return params, nil
}

// Close ends the averaging and frees the model.
func (t *trainer) Close() error {
	var errs []error
	if t.reducer != nil {
		errs = append(errs, t.reducer.Close())
	}
	if t.averager != nil {
		errs = append(errs, t.averager.close())
	}
	if t.engine != nil {
		errs = append(errs, t.engine.close())
	}
	return errors.Join(errs...)
}

func config(o options.Options) train.Config {
	return train.Config{Seed: o.Seed, Epochs: o.Epochs, Batch: o.Batch, LR: o.LR}
}

// shard is this rank's samples of an epoch as the library deals them.
func shard(g *dist.Group) train.Shard {
	return func(n int, seed uint64, epoch int) iter.Seq[int] { return dist.Shard(n, g, seed, epoch) }
}

// lookAtBuckets has the gradients of the model written to their places in the buckets,
// again where they have moved.
func (t *trainer) lookAtBuckets() error {
	for i := range t.at {
		view := t.reducer.View(i)
		if view.Addr == t.at[i] {
			continue
		}
		if err := t.engine.setGrad(i, view); err != nil {
			return err
		}
		t.at[i] = view.Addr
	}
	return nil
}

// average computes the gradients of step and averages them over the ranks; with wait
// that is over when it returns, and else as soon as the engine needs it. It changes no
// parameters: the same step can be done again.
func (t *trainer) average(ctx context.Context, step int, wait bool) error {
	if err := t.averager.begin(); err != nil {
		return err
	}
	var announce error
	err := t.Gradients(step, func() { t.averager.backward(t.reducer) }, func(i int) {
		if err := t.averager.ready(t.reducer, i); err != nil && announce == nil {
			announce = err
		}
	})
	if err := errors.Join(err, announce); err != nil {
		return err
	}
	if err := t.averager.finish(ctx, t.reducer, wait); err != nil {
		return err
	}
	return t.lookAtBuckets() // they move after the first step
}

// loss is that of step, the last one.
func (t *trainer) loss(step int) (float64, error) {
	loss, err := t.Loss()
	if err == nil && (math.IsNaN(loss) || math.IsInf(loss, 0)) {
		err = fmt.Errorf("%w: the loss of step %d is %v: choose a smaller -lr", goccl.ErrInvalid, step, loss)
	}
	return loss, err
}

// use makes the steps from now on run by layout. All ranks call it.
func (t *trainer) use(ctx context.Context, l bucket.Layout) error {
	if err := t.reducer.Apply(ctx, l); err != nil {
		return err
	}
	return t.lookAtBuckets()
}

// usual is how a run of o communicates, and other how it does not.
func usual(o options.Options) (this, other bucket.Layout) {
	if o.NoOverlap {
		return bucket.Hold(), bucket.Overlap()
	}
	return bucket.Overlap(), bucket.Hold()
}
