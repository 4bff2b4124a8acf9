package main

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/examples/ddp/report"
	"github.com/goccl/goccl/examples/ddp/train"
	"github.com/goccl/goccl/examples/ddp/ui"
)

// earlySteps is after how many steps parameters are compared for the first time:
// few enough that rounding has not spread.
const earlySteps = 20

// round is a rank among others. The group g is for gradients; talk is for all else.
type round struct {
	*session
	g    *dist.Group
	talk talk
	hash string // of the parameters after earlySteps
}

// train is the training itself, and the test of what came of it.
func (r *round) train(ctx context.Context) (err error) {
	t, err := newTrainer(ctx, r.place, r.g, r.training, r.o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	this, _ := usual(r.o)
	if err := t.use(ctx, this); err != nil {
		return err
	}
	r.sink.Begin(ui.Plan{Title: "training", Ranks: r.g.Size(), Steps: t.Steps(), Epochs: r.o.Epochs, Every: max(1, min(t.Steps()/10, 25))})
	begin := time.Now()
	losses := newMean(r.o.Epochs)
	for step := range t.Steps() {
		loss, err := r.step(ctx, t, step, begin)
		if err != nil {
			return err
		}
		losses.add(t.Epoch(step), loss)
		if step+1 == min(earlySteps, t.Steps()) {
			values, err := t.Values()
			if err != nil {
				return err
			}
			r.early, r.hash = train.Snapshot(values), train.Hash(values)
		}
	}
	r.report.Seconds = time.Since(begin).Seconds()
	r.report.Loss = losses.of(r.o.Epochs - 1)
	r.report.Run = report.Run{
		Ranks: r.g.Size(), Cores: runtime.NumCPU(), Epochs: r.o.Epochs, Steps: t.Steps(), Batch: r.o.Batch,
		Train: r.training.Len(), Test: r.testing.Len(), Seed: r.o.Seed, Link: r.o.Link.String(), NoOverlap: r.o.NoOverlap,
	}
	r.place.describe(&r.report.Run)
	took, err := t.averager.took(ctx, t.reducer)
	if err != nil {
		return err
	}
	r.report.Buckets = took.table(t.reducer)
	return r.finish(ctx, t)
}

// step does one step and shows it. The loss is the mean over all ranks.
func (r *round) step(ctx context.Context, t *trainer, step int, begin time.Time) (float64, error) {
	from := time.Now()
	if err := t.average(ctx, step, false); err != nil {
		return 0, err
	}
	if err := t.Update(step); err != nil {
		return 0, err
	}
	loss, err := t.loss(step)
	if err != nil {
		return 0, err
	}
	took, err := t.averager.took(ctx, t.reducer)
	if err != nil {
		return 0, err
	}
	whole := time.Since(from).Seconds()
	share := func(d time.Duration) float64 { return min(1, d.Seconds()/whole) }
	all, err := r.talk.gather(ctx, loss, 1-share(took.blocked), share(took.wire()), share(took.blocked))
	if err != nil {
		return 0, err
	}
	status := ui.Status{Step: step + 1, Epoch: t.Epoch(step) + 1}
	status.SamplesPerSecond = float64(status.Step*r.o.Batch) / time.Since(begin).Seconds()
	for _, row := range all {
		status.Loss += row[0] / float64(r.talk.Size())
		status.Ranks = append(status.Ranks, ui.Shares{Compute: row[1], Communication: row[2], Blocked: row[3]})
	}
	r.sink.Update(status)
	return status.Loss, nil
}

// finish tests the model and gathers what the ranks have ended with.
func (r *round) finish(ctx context.Context, t *trainer) error {
	rank, size := r.talk.Rank(), r.talk.Size()
	right, err := t.Correct(r.testing, rank, size)
	if err != nil {
		return err
	}
	all, err := r.talk.fold(ctx, float64(right), sum)
	if err != nil {
		return err
	}
	r.report.Accuracy = all / float64(r.testing.Len())
	values, err := t.Values()
	if err != nil {
		return err
	}
	hashes, err := r.talk.Exchange(ctx, []byte(train.Hash(values)))
	if err != nil {
		return err
	}
	for _, h := range hashes {
		r.report.Hashes = append(r.report.Hashes, string(h))
	}
	r.end = train.Snapshot(values)
	for _, v := range values {
		r.tensors = append(r.tensors, report.Tensor{Name: v.Name, Shape: v.Shape, Data: v.Data})
	}
	return nil
}

// mean collects means, one for each epoch.
type mean struct {
	sum []float64
	n   []int
}

func newMean(epochs int) *mean { return &mean{make([]float64, epochs), make([]int, epochs)} }

func (m *mean) add(epoch int, v float64) { m.sum[epoch] += v; m.n[epoch]++ }

func (m *mean) of(epoch int) float64 { return m.sum[epoch] / float64(m.n[epoch]) }
