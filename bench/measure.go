package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/goccl/goccl/dist"
)

// row is one result, as -json writes it.
type row struct {
	Op        string  `json:"op"`
	Bytes     int64   `json:"bytes"`
	Count     int     `json:"count"`
	DType     string  `json:"dtype"`
	Redop     string  `json:"redop"`
	Root      int     `json:"root"` // -1: none
	Ranks     int     `json:"ranks"`
	InPlace   bool    `json:"in_place"`
	TimeUS    float64 `json:"time_us"`
	MinUS     float64 `json:"min_us"`
	AlgBW     float64 `json:"algbw"`
	BusBW     float64 `json:"busbw"`
	Algo      string  `json:"algo"`
	Proto     string  `json:"proto"`
	Channels  int     `json:"channels"`
	Transport string  `json:"transport"`
	Cold      bool    `json:"cold"`
	Wrong     int64   `json:"wrong"`   // -1: not checked
	Backend   string  `json:"backend"` // with its settings where they are not the default

	batches []float64 // seconds, in the order of their turns
}

// measure runs all sizes on one rank. Rank 0 prints.
func measure(ctx context.Context, g *dist.Group, o *options, w io.Writer) (err error) {
	if o.coll.Rooted() && (o.root < 0 || o.root >= g.Size()) {
		return fmt.Errorf("root %d of %d ranks", o.root, g.Size())
	}
	c, err := o.cast(ctx, g)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	out := newTable(o, g, c.sides, w)
	if err := out.begin(); err != nil {
		return err
	}
	if err := settle(ctx, g); err != nil {
		return err
	}
	wrong := int64(0)
	var last *task
	for _, bytes := range o.sizes() {
		rows := make([][]*row, 2) // out of place and in place, by side
		for i, inPlace := range []bool{false, true} {
			if inPlace && !hasInPlace(o.coll) {
				continue
			}
			t, err := newTask(o, g, c.place, bytes, inPlace)
			if err == nil {
				rows[i], err = t.measure(ctx, c.sides)
			}
			if err != nil {
				return fmt.Errorf("%v of %d bytes: %w", o.coll, bytes, err)
			}
			last = t
			for _, r := range rows[i] {
				wrong += max(r.Wrong, 0)
			}
		}
		if err := out.rows(rows[0], rows[1]); err != nil {
			return err
		}
		if o.dump != "" && bytes == o.last() && g.Rank() == 0 {
			if err := last.dump(ctx, o.dump); err != nil {
				return err
			}
		}
		if err := c.place.reset(); err != nil {
			return err
		}
	}
	if err := out.end(wrong); err != nil {
		return err
	}
	if wrong > 0 {
		return fmt.Errorf("%d wrong elements", wrong)
	}
	return nil
}

// settle keeps the ranks busy for a moment before the first row: until then the
// system may have put two of them on one core.
func settle(ctx context.Context, g *dist.Group) error {
	const meetings = 5000
	for range meetings {
		if err := g.Barrier(ctx); err != nil {
			return err
		}
	}
	return nil
}

// measure times one task on each side and checks it before the timing and after.
func (t *task) measure(ctx context.Context, sides []*side) ([]*row, error) {
	rows := make([]*row, len(sides))
	iters := make([]int, len(sides))
	for i, s := range sides {
		rows[i] = t.blank(s)
		t.g = s.g
		if err := t.first(ctx, s, rows[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		var err error
		if iters[i], err = t.warmUp(ctx, s); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
	}
	times, err := t.times(ctx, sides, iters)
	if err != nil {
		return nil, err
	}
	for i, s := range sides {
		r := rows[i]
		t.g = s.g
		if err := t.again(ctx, sides[i], r); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		r.batches = times[i]
		sorted := slices.Sorted(slices.Values(times[i]))
		r.TimeUS, r.MinUS = sorted[len(sorted)/2]*1e6, sorted[0]*1e6
		if r.TimeUS > 0 {
			r.AlgBW = float64(t.bytes) / r.TimeUS / 1e3
			r.BusBW = r.AlgBW * busFactor(t.o.coll, t.n)
		}
	}
	return rows, nil
}

// blank is the row of a side before anything is measured.
func (t *task) blank(s *side) *row {
	r := &row{Op: t.o.coll.String(), Bytes: t.bytes, Count: t.count, DType: t.o.dtype.String(), Redop: "none", Root: -1, Ranks: t.n,
		InPlace: t.inPlace, Cold: t.o.cold, Wrong: -1, Channels: 1, Backend: s.name}
	if t.o.coll.Reduces() {
		r.Redop = t.o.op.String()
	}
	if t.o.coll.Rooted() {
		r.Root = t.o.root
	}
	return r
}

// first runs the operation once and notes how it ran and what came out.
func (t *task) first(ctx context.Context, s *side, r *row) error {
	t.prepare()
	if s.direct != nil {
		if err := s.once(ctx, t); err != nil {
			return err
		}
	} else {
		work := t.start()
		if err := work.Wait(ctx); err != nil {
			return err
		}
		info := work.Info()
		r.Algo, r.Proto, r.Channels = info.Algo, info.Proto, info.Channels
	}
	r.Transport = t.g.Transport()
	if t.o.check {
		r.Wrong = int64(t.wrong())
	}
	return nil
}

// again checks once more, on all ranks.
func (t *task) again(ctx context.Context, s *side, r *row) error {
	if !t.o.check {
		return nil
	}
	t.prepare()
	if err := s.once(ctx, t); err != nil {
		return err
	}
	r.Wrong += int64(t.wrong())
	sum, err := together(ctx, t.host, []float64{float64(r.Wrong)}, func(a, b float64) float64 { return a + b })
	if err == nil {
		r.Wrong = int64(sum[0])
	}
	return err
}

// warmUp runs the operations before the timing and returns how many make a batch.
func (t *task) warmUp(ctx context.Context, s *side) (int, error) {
	for range t.o.warm {
		if err := s.once(ctx, t); err != nil {
			return 0, err
		}
	}
	switch {
	case t.o.cold:
		return 1, nil
	case t.o.iters > 0:
		return t.o.iters, nil
	}
	return t.calibrate(ctx, s)
}

// times returns the seconds of one operation by side, once for each batch: of the
// slowest rank, since a collective has ended when it has on all of them. The sides
// take turns, so that what changes on the machine meets all of them.
func (t *task) times(ctx context.Context, sides []*side, iters []int) ([][]float64, error) {
	batches := t.o.batches
	if t.o.cold {
		if batches *= 3; t.o.iters > 0 {
			batches = t.o.iters
		}
	}
	graphs, err := t.capture(ctx, sides, iters)
	if err != nil {
		return nil, err
	}
	defer closeGraphs(graphs)
	all := make([][]float64, len(sides))
	early := 0
	if t.o.onGPU() && !t.o.cold {
		// One turn that does not count: what is made for as many operations as a batch
		// has, or for a graph's first replay, is made in it.
		early = 1
	}
	for b := range early + batches {
		for k := range sides {
			i := (k + b) % len(sides)
			t.g = sides[i].g
			if t.o.cold {
				t.prepare()
			}
			if err := t.host.Barrier(ctx); err != nil {
				return nil, err
			}
			took, err := sides[i].batch(ctx, t, iters[i], graphs[i])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", sides[i].name, err)
			}
			if b >= early {
				all[i] = append(all[i], took.Seconds()/float64(iters[i]))
			}
		}
	}
	for i := range all {
		if all[i], err = together(ctx, t.host, all[i], math.Max); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// calibrate finds how many operations make a batch; all ranks use the smallest
// answer.
func (t *task) calibrate(ctx context.Context, s *side) (int, error) {
	probes := 10
	if t.bytes > 4<<20 {
		probes = 2
	}
	took, err := s.batch(ctx, t, probes, nil)
	if err != nil {
		return 0, err
	}
	n := enough(t.o, took/time.Duration(probes))
	iters, err := together(ctx, t.host, []float64{float64(n)}, math.Min)
	if err != nil {
		return 0, err
	}
	return int(iters[0]), nil
}

// enough is how many operations that take each make a batch: 4 ms of them, on GPUs
// 20 ms and at least as many as nccl-tests makes, since the ranks do not begin at the
// same time and see the end late. A graph has its limits.
func enough(o *options, each time.Duration) int {
	batch, least, most := 4*time.Millisecond, 1, 5000
	if o.onGPU() {
		batch, least, most = 20*time.Millisecond, 20, 1000
	}
	if o.graph {
		most = 200
	}
	return min(max(int(batch/max(each, 1)), least), most)
}

// together combines what each rank has, element by element. All ranks have equally
// many.
func together(ctx context.Context, g *dist.Group, own []float64, combine func(a, b float64) float64) ([]float64, error) {
	mine := make([]byte, 0, 8*len(own))
	for _, v := range own {
		mine = binary.LittleEndian.AppendUint64(mine, math.Float64bits(v))
	}
	all, err := g.Exchange(ctx, mine)
	if err != nil {
		return nil, err
	}
	out := make([]float64, len(own))
	for r, part := range all {
		if len(part) != len(mine) {
			return nil, fmt.Errorf("rank %d has %d bytes of results, this one %d", r, len(part), len(mine))
		}
		for i := range out {
			v := math.Float64frombits(binary.LittleEndian.Uint64(part[8*i:]))
			if r > 0 {
				v = combine(out[i], v)
			}
			out[i] = v
		}
	}
	return out, nil
}
