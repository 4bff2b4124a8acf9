package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/examples/ddp/mnist"
	"github.com/goccl/goccl/examples/ddp/model"
	"github.com/goccl/goccl/examples/ddp/options"
	"github.com/goccl/goccl/examples/ddp/report"
)

// timeout ends a run in which a rank does not come, or stands still.
const timeout = time.Minute

// session is one rank's part of the run.
type session struct {
	o                 options.Options
	place             place
	training, testing *mnist.Set
	sink              sink // what it says is dropped on other ranks than 0
	report            report.Report
	early, end        []float32 // parameters after earlySteps and at the end
	tensors           []report.Tensor
}

// runRank is a rank process. It returns the exit code.
func runRank(o options.Options) int {
	var notice *os.File
	var out sink = &screen{out: os.Stdout, err: os.Stderr}
	if os.Getenv(envParent) != "" {
		out = &wire{out: os.Stdout}
		var err error
		if notice, err = inheritNotice(number("RANK"), number("WORLD_SIZE")); err != nil {
			fmt.Fprintln(os.Stderr, "ddp:", err)
			return 1
		}
	}
	end := watchEnding(notice)
	defer end.close()
	if err := takePart(end.ctx, o, out); err != nil && end.stopped() {
		return 128 + 2 // as a shell says of a program that Ctrl-C ended
	} else if err != nil {
		fmt.Fprintln(os.Stderr, end.sentence(err))
		if errors.As(err, new(missing)) {
			return usageError
		}
		return 1
	}
	return 0
}

// number is what the launcher, which is this program, has put into a variable.
func number(key string) int {
	n, _ := strconv.Atoi(os.Getenv(key))
	return n
}

// takePart joins the job, trains, and on rank 0 says how it went.
func takePart(ctx context.Context, o options.Options, out sink) error {
	cfg := dist.FromEnv()
	if cfg.Logger != nil {
		cfg.Logger = slog.New(calm{cfg.Logger.Handler()})
	}
	return join(ctx, cfg, o, out)
}

// join is takePart in the job of cfg.
func join(ctx context.Context, cfg dist.Config, o options.Options, out sink) (err error) {
	release, err := network(&cfg, o.Link)
	if err != nil {
		return err
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = timeout
	}
	s := &session{o: o}
	if s.place, err = openPlace(o, localRank(cfg.Identity), cfg.ShareDevice); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.place.close()) }()
	s.place.join(&cfg)
	first := false
	restore := model.Threads(1)
	defer restore()
	err = dist.Run(ctx, cfg, func(ctx context.Context, g *dist.Group) error {
		if first = g.Rank() == 0; first {
			s.sink = out
		} else {
			s.sink = nobody{}
		}
		return s.work(ctx, g)
	})
	if err != nil || !first {
		return err
	}
	// The other ranks have ended: what is left needs only one, and may have all
	// cores.
	if err := release(); err != nil {
		return err
	}
	return s.conclude(ctx)
}

// localRank is which of its machine's ranks this one is, 0 for the only one.
func localRank(id *dist.Identity) int {
	switch {
	case id == nil:
		return 0
	case id.LocalRank >= 0:
		return id.LocalRank
	}
	return id.Rank
}

// work is what all ranks do together.
func (s *session) work(ctx context.Context, g *dist.Group) error {
	if !s.o.Link.IsZero() {
		if err := giveWay(); err != nil {
			return fmt.Errorf("priority of the computing thread: %w", err)
		}
	}
	var err error
	if s.training, s.testing, err = digits(s.o); err != nil {
		return err
	}
	talk, err := newTalk(ctx, g)
	if err != nil {
		return err
	}
	r := &round{session: s, g: g, talk: talk}
	if err := r.train(ctx); err != nil {
		return err
	}
	return r.compare(ctx)
}

// digits loads the images that o asks for.
func digits(o options.Options) (train, test *mnist.Set, err error) {
	if train, test, err = mnist.Load(); err != nil {
		return nil, nil, err
	}
	return train.First(o.Images), test.First(o.Images), nil
}
