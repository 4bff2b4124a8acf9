package check

import (
	"slices"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/plan"
)

// Options says how far to look. The zero value is the full set of small models
// at a FIFO depth of 4.
type Options struct {
	Slots     int     // FIFO slots; 0: 4
	SlotBytes int64   // of a FIFO or scratch slot; 0: the key's chunk
	Units     []int64 // bytes of the buffer or block to check, without those that a Program that does not loop refuses; nil: the small models
	Aliases   []Alias // nil: all that Aliases lists
	Thin      bool    // only the small models with 0, 1, 2 and Slots+2 iterations
	Margin    bool    // a Program that needs every slot is an error (NoMargin)
	MaxSteps  int     // of one run; 0: 50 million
}

func (o Options) filled() Options {
	if o.Slots <= 0 {
		o.Slots = 4
	}
	if o.MaxSteps <= 0 {
		o.MaxSteps = 50_000_000
	}
	return o
}

// Models returns the sizes in bytes (of the buffer, or of a rank's block) that
// stand for all sizes, smallest first. See the package comment for why.
func Models(p *plan.Program, opt Options) []int64 {
	opt = opt.filled()
	if p.Key.Coll == goccl.Barrier {
		return []int64{0}
	}
	g, channels := p.Geom, int64(len(p.Rows))
	e, d := int64(p.Key.DType.Size()), int64(g.D)
	per := d * g.ChunkBytes
	if !p.Loops() {
		var us []int64
		for _, u := range []int64{0, e, g.Grain - e, g.Grain, g.Grain + e, g.ChunkBytes - e, g.ChunkBytes} {
			if u <= g.ChunkBytes {
				us = append(us, u)
			}
		}
		slices.Sort(us)
		return slices.Compact(us)
	}
	// The last iteration of every channel: from one element to full.
	tails := []int64{e, g.Grain - e, g.Grain, g.Grain + e, channels*d*g.Grain - e, channels * d * g.Grain, channels * per}
	if d > 1 {
		tails = append(tails, channels*(d-1)*g.Grain, channels*d*g.Grain+e)
	}
	most := int64(opt.Slots/g.Slices + 2)
	us := []int64{0}
	for k := int64(1); k <= most; k++ {
		if opt.Thin && k > 2 && k < most {
			continue
		}
		for _, t := range tails {
			if t <= channels*per && (!opt.Thin || k < most || t == e || t == channels*per) {
				us = append(us, (k-1)*channels*per+t)
			}
		}
	}
	slices.Sort(us)
	return slices.Compact(us)
}
