package main

import (
	"github.com/goccl/goccl/comm"
	"github.com/goccl/goccl/comm/transport"
	"github.com/goccl/goccl/comm/transport/faulty"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/examples/ddp/options"
)

// linkThreads is GOMAXPROCS of a rank with a shaped link. The second thread is idle
// but for messages: what arrives from a network while the first one computes would
// otherwise wait until the scheduler interrupts it, up to 10 ms each time.
const linkThreads = "GOMAXPROCS=2"

// network makes the ranks of the job live as on a network: with the link l between
// them, and each on its own share of the cores. release gives the cores back.
//
// The tuner's constants were measured without a link and are wrong with one. The
// choice by size alone is better: two-shot for the buckets, which sends over the
// links to all other ranks at once.
func network(cfg *dist.Config, l options.Link) (release func() error, err error) {
	if l.IsZero() || cfg.Identity == nil {
		return func() error { return nil }, nil
	}
	plan := faulty.Config{Link: faulty.Link{BitsPerSecond: float64(l.BitsPerSecond), Latency: l.Latency}}
	cfg.Transport.Decorate = func(ts []transport.Transport) []transport.Transport {
		out := make([]transport.Transport, len(ts))
		for i, t := range ts {
			out[i] = faulty.New(t, plan)
		}
		return out
	}
	if cfg.Tuning.Tuner == nil {
		cfg.Tuning.Tuner = comm.DefaultTuner()
	}
	id := cfg.Identity
	if id.LocalSize > 0 {
		return takeCores(id.LocalRank, id.LocalSize)
	}
	return takeCores(id.Rank, id.Size)
}
