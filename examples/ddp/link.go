package main

import (
	"github.com/goccl/goccl/comm/transport"
	"github.com/goccl/goccl/comm/transport/faulty"
	"github.com/goccl/goccl/examples/ddp/options"
)

// shaped returns what puts a link between ranks, for dist.Transport.Decorate; nil
// for none.
func shaped(l options.Link) func([]transport.Transport) []transport.Transport {
	if l.IsZero() {
		return nil
	}
	plan := faulty.Config{Link: faulty.Link{BitsPerSecond: float64(l.BitsPerSecond), Latency: l.Latency}}
	return func(ts []transport.Transport) []transport.Transport {
		out := make([]transport.Transport, len(ts))
		for i, t := range ts {
			out[i] = faulty.New(t, plan)
		}
		return out
	}
}
