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

// shape puts a link between the ranks of the job. Nothing goes past it through
// shared memory.
//
// The tuner's constants were measured without a link and are wrong with one. The
// choice by size alone is better: two-shot for the buckets, which sends over the
// links to all other ranks at once.
func shape(cfg *dist.Config, l options.Link) {
	plan := faulty.Config{Link: faulty.Link{BitsPerSecond: float64(l.BitsPerSecond), Latency: l.Latency}}
	cfg.Transport.NoShm = true
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
}
