package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/examples/ddp/model"
	"github.com/goccl/goccl/examples/ddp/report"
	"github.com/goccl/goccl/examples/ddp/train"
	"github.com/goccl/goccl/examples/ddp/ui"
)

// conclude is what rank 0 does alone at the end: it trains once more as one rank,
// compares, and writes the results.
func (s *session) conclude(ctx context.Context) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU()))
	defer model.Threads(runtime.NumCPU())()
	if err := s.oneRank(ctx); err != nil {
		return err
	}
	if s.o.Dump != "" {
		if err := write(s.o.Dump, func(w io.Writer) error { return report.WriteDump(w, s.tensors) }); err != nil {
			return err
		}
	}
	if s.o.JSON != "" {
		if err := write(s.o.JSON, s.report.WriteJSON); err != nil {
			return err
		}
	}
	var text strings.Builder
	if err := s.report.WriteText(&text); err != nil {
		return err
	}
	s.sink.Report(text.String())
	return nil
}

// oneRank trains on the same batches as a job of one rank, and notes how far its
// parameters are from those of all ranks.
func (s *session) oneRank(ctx context.Context) error {
	return dist.Run(ctx, dist.Config{}, func(ctx context.Context, g *dist.Group) (err error) {
		e, err := s.place.engine(ctx, s.o.Seed, s.o.Batch)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, e.close()) }()
		w, err := train.NewWorker(e, config(s.o), s.training, 0, 1)
		if err != nil {
			return err
		}
		w.UseShard(shard(g))
		s.sink.Begin(ui.Plan{Title: "one rank", Steps: w.Steps(), Epochs: s.o.Epochs, Every: max(1, w.Steps()/3)})
		begin := time.Now()
		diff := &report.Difference{Steps: min(earlySteps, w.Steps())}
		for step := range w.Steps() {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := errors.Join(w.Gradients(step, nil, nil), w.Update(step)); err != nil {
				return err
			}
			loss, err := w.Loss()
			if err != nil {
				return err
			}
			if step+1 == diff.Steps {
				if diff.Early, err = difference(w, s.early); err != nil {
					return err
				}
			}
			s.sink.Update(ui.Status{
				Step: step + 1, Epoch: w.Epoch(step) + 1, Loss: loss,
				SamplesPerSecond: float64((step+1)*s.o.Batch) / time.Since(begin).Seconds(),
			})
		}
		diff.End, err = difference(w, s.end)
		s.report.SingleRank = diff
		return err
	})
}

// difference is how far the parameters of w are from a snapshot.
func difference(w *train.Worker, from []float32) (float64, error) {
	values, err := w.Values()
	if err != nil {
		return 0, err
	}
	return train.Difference(train.Snapshot(values), from)
}

// write makes or replaces the file at path, in one go.
func write(path string, content func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("ddp: %w", err)
	}
	err = content(f)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("ddp: %s: %w", path, err)
	}
	return nil
}
