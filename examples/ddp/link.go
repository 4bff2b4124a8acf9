package main

import (
	"github.com/goccl/goccl"
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
// The library chooses algorithms by what it has measured of the machine, and knows
// nothing of the link. Two-shot sends over the links to all other ranks at once, in
// two steps, which is what a slow link wants; GOCCL_ALGO chooses another one.
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
	if cfg.Tuning.Algorithm == goccl.Auto {
		cfg.Tuning.Algorithm = goccl.TwoShot
	}
}
