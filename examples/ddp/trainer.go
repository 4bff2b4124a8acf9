package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/bucket"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/examples/ddp/mnist"
	"github.com/goccl/goccl/examples/ddp/options"
	"github.com/goccl/goccl/examples/ddp/train"
	"github.com/goccl/goccl/process_group/dense"
)

// trainer is one rank's training: the model and what averages its gradients, which
// live in the buckets themselves.
type trainer struct {
	*train.Worker
	reducer *bucket.Reducer
	at      []uintptr // where the gradient of each parameter lies
}

// newTrainer makes this rank's trainer from scratch. All ranks of g call it. The
// caller closes it before there is another one on g.
func newTrainer(ctx context.Context, g *dist.Group, set *mnist.Set, o options.Options) (*trainer, error) {
	w, err := train.NewWorker(config(o), set, g.Rank(), g.Size())
	if err != nil {
		return nil, err
	}
	w.UseShard(shard(g))
	t := &trainer{Worker: w, at: make([]uintptr, len(w.Model().Params()))}
	params := make([]bucket.Param, len(t.at))
	for i, p := range w.Model().Params() {
		value, err := dense.Buffer(p.Value)
		if err != nil {
			return nil, err
		}
		params[i] = bucket.Param{Name: p.Name, Value: value}
	}
	t.reducer, err = bucket.New(ctx, g, params, bucket.Config{FirstBytes: o.FirstBucketBytes(), Bytes: o.BucketBytes()})
	if err != nil {
		return nil, err
	}
	if err := t.lookAtBuckets(); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// Close ends the averaging.
func (t *trainer) Close() error { return t.reducer.Close() }

func config(o options.Options) train.Config {
	return train.Config{Seed: o.Seed, Epochs: o.Epochs, Batch: o.Batch, LR: o.LR}
}

// shard is this rank's samples of an epoch as the library deals them.
func shard(g *dist.Group) train.Shard {
	return func(n int, seed uint64, epoch int) iter.Seq[int] { return dist.Shard(n, g, seed, epoch) }
}

// lookAtBuckets makes the gradients of the model tensors over their places in the
// buckets, again where they have moved.
func (t *trainer) lookAtBuckets() error {
	for i, p := range t.Model().Params() {
		view := t.reducer.View(i)
		if view.Addr == t.at[i] {
			continue
		}
		g, err := dense.Tensor(view, p.Value.Shape()...)
		if err != nil {
			return err
		}
		if err := t.Model().SetGrad(i, g); err != nil {
			return err
		}
		t.at[i] = view.Addr
	}
	return nil
}

// timing is where the time of one step went on this rank.
type timing struct {
	total   time.Duration
	wire    time.Duration // some bucket was under way
	blocked time.Duration // this rank could only wait for it
}

// average computes the gradients of step and averages them over the ranks. It
// changes no parameters: the same step can be done again.
func (t *trainer) average(ctx context.Context, step int) (loss float64, took timing, err error) {
	begin := time.Now()
	var announce error
	loss, err = t.Gradients(step, t.reducer.Begin, func(i int) {
		if err := t.reducer.Ready(i); err != nil && announce == nil {
			announce = err
		}
	})
	if err := errors.Join(err, announce); err != nil {
		return 0, timing{}, err
	}
	if err := t.reducer.Finish(ctx); err != nil {
		return 0, timing{}, err
	}
	took.total = time.Since(begin)
	if math.IsNaN(loss) || math.IsInf(loss, 0) {
		return 0, timing{}, fmt.Errorf("%w: the loss of step %d is %v: choose a smaller -lr", goccl.ErrInvalid, step, loss)
	}
	stats := t.reducer.Stats()
	took.blocked, took.wire = stats.Blocked, onTheWire(stats.Buckets)
	return loss, took, t.lookAtBuckets() // they move after the first step
}

// onTheWire is the time in which at least one bucket was under way. Buckets are
// launched in order.
func onTheWire(buckets []bucket.BucketStats) time.Duration {
	var sum, until time.Duration
	for _, b := range buckets {
		sum += max(0, b.Done-max(b.Launched, until))
		until = max(until, b.Done)
	}
	return sum
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
