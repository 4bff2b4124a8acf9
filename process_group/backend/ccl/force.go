package ccl

import (
	"fmt"
	"log/slog"
	"sync"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm"
	"github.com/goccl/goccl/comm/plan/algo"
)

// Force fixes a part of the choice that the tuner otherwise makes for every
// operation. It must be the same on all ranks; the zero value fixes nothing.
type Force struct {
	Algorithm   goccl.Algorithm
	Protocol    goccl.Protocol
	MaxChannels int // 0: no limit
	ChunkBytes  int // 0: chosen by size
}

// forced is a Tuner that overrules another one.
type forced struct {
	Force
	base   comm.Tuner
	log    *slog.Logger
	warned sync.Map // of collectives
}

var _ comm.Tuner = (*forced)(nil)

// over returns base overruled by f; base itself when f fixes nothing. A nil base
// is the communicator's own tuner.
func (f Force) over(base comm.Tuner, log *slog.Logger) comm.Tuner {
	if f == (Force{}) {
		return base
	}
	if base == nil {
		base = comm.DefaultTuner()
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &forced{Force: f, base: base, log: log}
}

// Choose implements comm.Tuner. A collective that does not have the forced
// algorithm keeps the chosen one, with one warning.
func (f *forced) Choose(r comm.Request) (comm.Decision, error) {
	d, err := f.base.Choose(r)
	if err != nil {
		return d, err
	}
	if f.Algorithm != goccl.Auto && f.Algorithm != d.Algo {
		if err := f.fits(r); err == nil {
			d.Algo = f.Algorithm
		} else if _, again := f.warned.LoadOrStore(r.Coll, true); !again {
			f.log.Warn("the forced algorithm is not used", "collective", r.Coll.String(), "forced", f.Algorithm.String(), "used", d.Algo.String(), "why", err)
		}
	}
	if f.Protocol != goccl.AutoProto {
		d.Proto = f.Protocol
	}
	if f.MaxChannels > 0 {
		d.Channels = min(d.Channels, f.MaxChannels)
	}
	if f.ChunkBytes > 0 {
		d.Chunk = roundChunk(f.ChunkBytes)
	}
	return d, nil
}

// fits says why the collective cannot run by the forced algorithm.
func (f *forced) fits(r comm.Request) error {
	if err := algo.Supports(r.Coll, f.Algorithm, r.Ranks); err != nil {
		return err
	}
	part := r.Bytes
	if r.Coll == goccl.AllGather {
		part /= int64(max(r.Ranks, 1))
	}
	if f.Algorithm == goccl.OneShot && part > r.MaxOneShot {
		return fmt.Errorf("%w: %d bytes in one shot; at most %d", goccl.ErrUnsupported, part, r.MaxOneShot)
	}
	return nil
}

// roundChunk makes a chunk what programs need: a multiple of 512 bytes.
func roundChunk(bytes int) int64 { return int64(max(bytes, 512)) &^ 511 }
