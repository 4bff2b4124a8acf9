package main

import (
	"context"
	"runtime"
	"time"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/bucket"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/examples/ddp/report"
	"github.com/goccl/goccl/examples/ddp/train"
	"github.com/goccl/goccl/examples/ddp/ui"
	processgroup "github.com/goccl/goccl/process_group"
)

// earlySteps is after how many steps parameters are compared for the first time:
// few enough that rounding has not spread.
const earlySteps = 20

// round is a rank among others. The group g is for gradients; talk is for all else,
// because the order of operations of g is the reducer's.
type round struct {
	*session
	g, talk *dist.Group
	hash    string // of the parameters after earlySteps
}

// train is the training itself, and the test of what came of it.
func (r *round) train(ctx context.Context) error {
	t, err := newTrainer(ctx, r.g, r.training, r.o)
	if err != nil {
		return err
	}
	defer t.Close()
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
			r.early, r.hash = train.Snapshot(t.Model().Params()), train.Hash(t.Model().Params())
		}
	}
	r.report.Seconds = time.Since(begin).Seconds()
	r.report.Loss = losses.of(r.o.Epochs - 1)
	r.report.Run = report.Run{
		Ranks: r.g.Size(), Cores: runtime.NumCPU(), Epochs: r.o.Epochs, Steps: t.Steps(), Batch: r.o.Batch,
		Train: r.training.Len(), Test: r.testing.Len(), Seed: r.o.Seed, Link: r.o.Link.String(), NoOverlap: r.o.NoOverlap,
	}
	r.report.Buckets = bucketTable(t.reducer)
	return r.finish(ctx, t)
}

// step does one step and shows it. The loss is the mean over all ranks.
func (r *round) step(ctx context.Context, t *trainer, step int, begin time.Time) (float64, error) {
	from := time.Now()
	loss, took, err := t.average(ctx, step)
	if err != nil {
		return 0, err
	}
	t.Update(step)
	whole := time.Since(from).Seconds()
	own := []float64{loss, 1 - took.blocked.Seconds()/whole, took.wire.Seconds() / whole, took.blocked.Seconds() / whole}
	all := make([]float64, len(own)*r.talk.Size())
	if err := processgroup.AllGather(ctx, r.talk, all, own); err != nil {
		return 0, err
	}
	status := ui.Status{Step: step + 1, Epoch: t.Epoch(step) + 1}
	status.SamplesPerSecond = float64(status.Step*r.o.Batch) / time.Since(begin).Seconds()
	for rank := range r.talk.Size() {
		row := all[rank*len(own):][:len(own)]
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
	sum := []int64{int64(right)}
	if err := processgroup.AllReduce(ctx, r.talk, sum, goccl.Sum); err != nil {
		return err
	}
	r.report.Accuracy = float64(sum[0]) / float64(r.testing.Len())
	params := t.Model().Params()
	own := []byte(train.Hash(params))
	all := make([]byte, size*len(own))
	if err := processgroup.AllGather(ctx, r.talk, all, own); err != nil {
		return err
	}
	for rank := range size {
		r.report.Hashes = append(r.report.Hashes, string(all[rank*len(own):][:len(own)]))
	}
	r.end = train.Snapshot(params)
	for _, p := range params {
		r.tensors = append(r.tensors, report.Tensor{Name: p.Name, Shape: p.Value.Shape(), Data: p.Value.Float32s()})
	}
	return nil
}

// bucketTable is what happened to the buckets in the last step.
func bucketTable(r *bucket.Reducer) []report.Bucket {
	names := r.State().Buckets
	var table []report.Bucket
	for i, b := range r.Stats().Buckets {
		table = append(table, report.Bucket{
			Bytes: b.Bytes, Parameters: names[i], ReadyMS: ms(b.Ready), LaunchedMS: ms(b.Launched), DoneMS: ms(b.Done),
		})
	}
	return table
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// mean collects means, one for each epoch.
type mean struct {
	sum []float64
	n   []int
}

func newMean(epochs int) *mean { return &mean{make([]float64, epochs), make([]int, epochs)} }

func (m *mean) add(epoch int, v float64) { m.sum[epoch] += v; m.n[epoch]++ }

func (m *mean) of(epoch int) float64 { return m.sum[epoch] / float64(m.n[epoch]) }
