package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/goccl/goccl/bucket"
	"github.com/goccl/goccl/examples/ddp/report"
	"github.com/goccl/goccl/examples/ddp/train"
	"github.com/goccl/goccl/examples/ddp/ui"
)

// pairs is how many steps are measured in all three ways.
const pairs = 12

// compare trains the first steps once more, from the same beginning, with overlap
// where the run has none and the other way round: the parameters must come out the
// same. The first of these steps are done in all ways, one next to the other, for
// the times.
func (r *round) compare(ctx context.Context) (err error) {
	t, err := newTrainer(ctx, r.place, r.g, r.training, r.o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	steps := min(earlySteps, t.Steps())
	r.sink.Begin(ui.Plan{Title: "overlap", Steps: steps, Epochs: t.Epoch(steps-1) + 1, Every: steps})
	var m measured
	begin, done := time.Now(), 0
	this, other := usual(r.o)
	for step := range steps {
		ways := []bucket.Layout{other}
		if step < pairs {
			ways = []bucket.Layout{this, bucket.NoComm(), other}
			if step%2 == 1 {
				ways[0], ways[1] = ways[1], ways[0]
			}
		}
		var loss float64
		for _, way := range ways { // the last one counts for the parameters
			var took timing
			if loss, took, err = r.timed(ctx, t, step, way); err != nil {
				return err
			}
			done++
			if step > 0 { // the first step of a process is slower
				m.add(way.String(), took)
			}
		}
		if err := t.Update(step); err != nil {
			return err
		}
		r.sink.Update(ui.Status{
			Step: step + 1, Epoch: t.Epoch(step) + 1, Loss: loss,
			SamplesPerSecond: float64(done*r.o.Batch) / time.Since(begin).Seconds(),
		})
	}
	values, err := t.Values()
	if err != nil {
		return err
	}
	return r.settle(ctx, &m, steps, train.Hash(values))
}

// timed does step in one way, after all ranks have come to it. The time is that of
// the slowest rank.
func (r *round) timed(ctx context.Context, t *trainer, step int, way bucket.Layout) (float64, timing, error) {
	if err := t.use(ctx, way); err != nil {
		return 0, timing{}, err
	}
	if err := r.talk.Barrier(ctx); err != nil {
		return 0, timing{}, err
	}
	if err := t.average(ctx, step, true); err != nil {
		return 0, timing{}, err
	}
	loss, err := t.loss(step)
	if err != nil {
		return 0, timing{}, err
	}
	took, err := t.averager.took(ctx, t.reducer)
	if err != nil {
		return 0, timing{}, err
	}
	slowest, err := r.talk.fold(ctx, float64(took.total), most)
	took.total = time.Duration(slowest)
	return loss, took, err
}

// measured is the times of steps, by how they were done.
type measured struct {
	totals  map[string][]time.Duration
	blocked map[string][]time.Duration
}

func (m *measured) add(way string, t timing) {
	if m.totals == nil {
		m.totals, m.blocked = map[string][]time.Duration{}, map[string][]time.Duration{}
	}
	m.totals[way] = append(m.totals[way], t.total)
	m.blocked[way] = append(m.blocked[way], t.blocked)
}

// settle puts the results into the report.
func (r *round) settle(ctx context.Context, m *measured, steps int, hash string) error {
	this, other := usual(r.o)
	with, without := m.totals[this.String()], m.totals[bucket.NoComm().String()]
	r.report.Overlap = &report.Overlap{
		Steps: steps, Hash: r.hash, Other: hash,
		StepMS: ms(median(with)), OtherMS: ms(median(m.totals[other.String()])),
	}
	blocked, err := r.talk.fold(ctx, ms(average(m.blocked[this.String()])), sum)
	if err != nil {
		return err
	}
	r.report.BlockedMS = blocked / float64(r.talk.Size())
	if len(with) > 0 {
		exposed := ms(bucket.Exposed(with, without))
		r.report.ExposedMS, r.report.Pairs = &exposed, len(with)
	}
	return nil
}

func median(ds []time.Duration) time.Duration {
	if len(ds) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(ds))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

func average(ds []time.Duration) time.Duration {
	var sum time.Duration
	for _, d := range ds {
		sum += d
	}
	return sum / time.Duration(max(1, len(ds)))
}
