package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/autotune"
	"github.com/goccl/goccl/autotune/model"
	"github.com/goccl/goccl/comm"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/dist"
	processgroup "github.com/goccl/goccl/process_group"
)

// picker is a tuner that is told what to choose for f32, and notes what it was
// asked. Operations of other types are those of the measuring itself.
type picker struct {
	choice atomic.Pointer[model.Choice]
	asked  atomic.Pointer[comm.Request]
}

// Choose implements comm.Tuner.
func (p *picker) Choose(r comm.Request) (comm.Decision, error) {
	if r.DType != goccl.F32 {
		return comm.DefaultTuner().Choose(r)
	}
	p.asked.Store(&r)
	if c := p.choice.Load(); c != nil {
		return comm.Decision(*c), nil
	}
	return comm.DefaultTuner().Choose(r)
}

// rank measures on one rank; on all of them in this process with Local ranks.
func (o *tuneOptions) rank(ctx context.Context, cfg dist.Config) error {
	pick := &picker{}
	cfg.Tuning = dist.Tuning{Tuner: pick}
	cfg.Transport.NoShm = o.class == model.Network
	tuner, err := autotune.Default()
	if err != nil {
		return err
	}
	return dist.Run(ctx, cfg, func(ctx context.Context, g *dist.Group) error {
		var points []autotune.Point
		for _, s := range o.subjects() {
			p, err := o.point(ctx, g, s, pick, tuner)
			if err != nil {
				return fmt.Errorf("%v of %d bytes: %w", s.coll, s.bytes, err)
			}
			points = append(points, p)
		}
		if g.Rank() != 0 {
			return nil
		}
		return writePoints(o.points, points)
	})
}

// subject is one collective of one size.
type subject struct {
	coll   goccl.Collective
	bytes  int64
	window bool
}

func (o *tuneOptions) subjects() []subject {
	var out []subject
	for _, c := range o.colls {
		for _, window := range []bool{false, true} {
			if window && (c != goccl.AllReduce || o.class == model.Network) {
				continue
			}
			for b := o.min; b <= o.max; b *= o.factor {
				out = append(out, subject{c, b, window})
			}
		}
	}
	return out
}

// call is one collective on buffers of its own.
type call struct {
	g        *dist.Group
	coll     goccl.Collective
	src, dst device.Buffer
}

// newCall makes buffers of about the given bytes in all, or of one element where
// a rank's part would be less.
func newCall(g *dist.Group, s subject, d goccl.DType) (c call, free func() error, err error) {
	n := g.Size()
	c = call{g: g, coll: s.coll}
	big := max(int(s.bytes)/d.Size(), 1)
	part := max(big/n, 1)
	if s.window {
		c.src, err = g.NewBuffer(big, d)
		c.dst = c.src
		return c, func() error { return g.FreeBuffer(c.src) }, err
	}
	make := func(n int) device.Buffer { return newArray(d, n).buffer() }
	switch s.coll {
	case goccl.AllGather:
		c.src, c.dst = make(part), make(part*n)
	case goccl.ReduceScatter:
		c.src, c.dst = make(part*n), make(part)
	case goccl.AllToAll:
		c.src, c.dst = make(part*n), make(part*n)
	default:
		c.src, c.dst = make(big), make(big)
	}
	return c, func() error { return nil }, nil
}

// run runs one operation. A barrier follows one with a root, so that no rank runs
// ahead: what is timed is how long an operation takes, not how many can be under
// way.
func (c call) run(ctx context.Context) error {
	var w processgroup.Work
	switch c.coll {
	case goccl.AllReduce:
		w = c.g.AllReduceInto(c.dst, c.src, goccl.Sum)
	case goccl.AllGather:
		w = c.g.AllGatherInto(c.dst, c.src)
	case goccl.ReduceScatter:
		w = c.g.ReduceScatter(c.dst, c.src, goccl.Sum)
	case goccl.AllToAll:
		w = c.g.AllToAll(c.dst, c.src)
	case goccl.Broadcast:
		w = c.g.Broadcast(c.src, 0)
	case goccl.Reduce:
		w = c.g.Reduce(c.src, goccl.Sum, 0)
	default:
		return fmt.Errorf("%v has one way to run; there is nothing to tune", c.coll)
	}
	err := w.Wait(ctx)
	if err == nil && c.coll.Rooted() {
		err = c.g.Barrier(ctx)
	}
	return err
}

// point measures every candidate of s, a batch of each in turn.
func (o *tuneOptions) point(ctx context.Context, g *dist.Group, s subject, pick *picker, t *autotune.Tuner) (autotune.Point, error) {
	c, free, err := newCall(g, s, goccl.F32)
	if err != nil {
		return autotune.Point{}, err
	}
	// A communicator remembers its last choice; an operation of another type makes
	// it ask again.
	other, _, err := newCall(g, subject{coll: s.coll, bytes: 1}, goccl.U8)
	if err != nil {
		return autotune.Point{}, err
	}
	m := &measuring{o: o, g: g, call: c, other: other, pick: pick}
	if err := m.choose(ctx, nil); err != nil {
		return autotune.Point{}, err
	}
	if err := c.run(ctx); err != nil {
		return autotune.Point{}, err
	}
	r := *pick.asked.Load()
	p := autotune.NewPoint(r)
	var choices []model.Choice
	var iters []int
	all := t.Explain(r)
	least := math.Inf(1)
	for _, a := range all {
		least = min(least, a.US)
	}
	for _, a := range all {
		if a.US <= o.prune*least {
			choices = append(choices, model.Choice(a.Decision))
			iters = append(iters, min(max(int(o.batch/a.US), 1), 400))
		}
	}
	times, err := m.times(ctx, choices, iters)
	if err != nil {
		return p, err
	}
	for i, c := range choices {
		each := o.rounds * turnBatches
		// The fastest batch is the one that nothing else on the machine slowed.
		p.Add(c, math.Round(slices.Min(times[i*each:(i+1)*each])*1e3)/1e3)
	}
	return p, free()
}

// measuring is the measuring of one subject.
type measuring struct {
	o     *tuneOptions
	g     *dist.Group
	call  call
	other call
	pick  *picker
}

// choose makes the next operations run by c. All ranks do it together.
func (m *measuring) choose(ctx context.Context, c *model.Choice) error {
	if err := m.g.Barrier(ctx); err != nil {
		return err
	}
	m.pick.choice.Store(c)
	for range 2 { // what is not yet connected is not remembered
		if err := m.other.run(ctx); err != nil {
			return err
		}
	}
	return m.g.Barrier(ctx)
}

// turnBatches is how many batches a candidate has in a turn.
const turnBatches = 4

// times returns microseconds of one operation, of the slowest rank: all batches
// of the first choice, then of the next. The turns of the choices are interleaved,
// each round beginning with another one.
func (m *measuring) times(ctx context.Context, choices []model.Choice, iters []int) ([]float64, error) {
	each := m.o.rounds * turnBatches
	out := make([]float64, len(choices)*each)
	for round := range m.o.rounds {
		for k := range choices {
			i := (k + round) % len(choices)
			at := i*each + round*turnBatches
			if err := m.turn(ctx, &choices[i], iters[i], out[at:at+turnBatches]); err != nil {
				return nil, err
			}
		}
	}
	return out, m.g.AllReduce(device.SliceOf(out), goccl.Max).Wait(ctx)
}

// turn fills out with the times of batches of one choice.
func (m *measuring) turn(ctx context.Context, c *model.Choice, iters int, out []float64) error {
	if err := m.choose(ctx, c); err != nil {
		return err
	}
	for range 2 {
		if err := m.call.run(ctx); err != nil {
			return err
		}
	}
	for b := range out {
		if err := m.g.Barrier(ctx); err != nil {
			return err
		}
		begin := time.Now()
		for range iters {
			if err := m.call.run(ctx); err != nil {
				return err
			}
		}
		out[b] = time.Since(begin).Seconds() * 1e6 / float64(iters)
	}
	return nil
}
