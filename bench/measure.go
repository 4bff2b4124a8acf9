package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/dist"
	processgroup "github.com/goccl/goccl/process_group"
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
	Wrong     int64   `json:"wrong"` // -1: not checked
}

// measure runs all sizes on one rank. Rank 0 prints.
func measure(ctx context.Context, g *dist.Group, o *options, w io.Writer) error {
	if o.coll.Rooted() && (o.root < 0 || o.root >= g.Size()) {
		return fmt.Errorf("root %d of %d ranks", o.root, g.Size())
	}
	out := newTable(o, g, w)
	if err := out.begin(); err != nil {
		return err
	}
	if err := settle(ctx, g); err != nil {
		return err
	}
	wrong := int64(0)
	var last *task
	for _, bytes := range o.sizes() {
		rows := make([]*row, 2)
		for i, inPlace := range []bool{false, true} {
			if inPlace && !hasInPlace(o.coll) {
				continue
			}
			t := newTask(o, g, bytes, inPlace)
			r, err := t.measure(ctx)
			if err != nil {
				return fmt.Errorf("%v: %w", t, err)
			}
			rows[i], last = r, t
			wrong += max(r.Wrong, 0)
		}
		if err := out.row(rows[0], rows[1]); err != nil {
			return err
		}
	}
	if o.dump != "" && g.Rank() == 0 && last != nil {
		if err := last.dump(ctx, o.dump); err != nil {
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

// measure times one task and checks it before the timing and after.
func (t *task) measure(ctx context.Context) (*row, error) {
	r := &row{Op: t.o.coll.String(), Bytes: t.bytes, Count: t.count, DType: t.o.dtype.String(), Redop: "none", Root: -1, Ranks: t.n,
		InPlace: t.inPlace, Cold: t.o.cold, Wrong: -1, Channels: 1}
	if t.o.coll.Reduces() {
		r.Redop = t.o.op.String()
	}
	if t.o.coll.Rooted() {
		r.Root = t.o.root
	}
	t.prepare()
	work := t.start()
	if err := work.Wait(ctx); err != nil {
		return nil, err
	}
	info := work.Info()
	r.Algo, r.Proto, r.Channels = info.Algo, info.Proto, info.Channels
	r.Transport = t.g.Transport()
	if t.o.check {
		r.Wrong = int64(t.wrong())
	}
	for range t.o.warm {
		if err := t.start().Wait(ctx); err != nil {
			return nil, err
		}
	}
	times, err := t.times(ctx)
	if err != nil {
		return nil, err
	}
	if t.o.check {
		t.prepare()
		if err := t.start().Wait(ctx); err != nil {
			return nil, err
		}
		r.Wrong += int64(t.wrong())
		sum := []int64{r.Wrong}
		if err := processgroup.AllReduce(ctx, t.g, sum, goccl.Sum); err != nil {
			return nil, err
		}
		r.Wrong = sum[0]
	}
	slices.Sort(times)
	r.TimeUS, r.MinUS = times[len(times)/2]*1e6, times[0]*1e6
	if r.TimeUS > 0 {
		r.AlgBW = float64(t.bytes) / r.TimeUS / 1e3
		r.BusBW = r.AlgBW * busFactor(t.o.coll, t.n)
	}
	return r, nil
}

// times returns the seconds of one operation, once for each batch: of the slowest
// rank, since a collective has ended when it has on all of them.
func (t *task) times(ctx context.Context) ([]float64, error) {
	iters, batches := t.o.iters, t.o.batches
	if t.o.cold {
		batches, iters = max(batches, 3*batches), 1
		if t.o.iters > 0 {
			batches = t.o.iters
		}
	} else if iters == 0 {
		var err error
		if iters, err = t.calibrate(ctx); err != nil {
			return nil, err
		}
	}
	own := make([]float64, batches)
	for b := range own {
		if t.o.cold {
			t.prepare()
		}
		if err := t.g.Barrier(ctx); err != nil {
			return nil, err
		}
		begin := time.Now()
		for range iters {
			if err := t.start().Wait(ctx); err != nil {
				return nil, err
			}
		}
		own[b] = time.Since(begin).Seconds() / float64(iters)
	}
	err := t.g.AllReduce(device.SliceOf(own), goccl.Max).Wait(ctx)
	return own, err
}

// calibrate finds how many operations fill a batch of about 4 ms; all ranks use
// the smallest answer.
func (t *task) calibrate(ctx context.Context) (int, error) {
	const batch, most = 4 * time.Millisecond, 5000
	probes := 10
	if t.bytes > 4<<20 {
		probes = 2
	}
	begin := time.Now()
	for range probes {
		if err := t.start().Wait(ctx); err != nil {
			return 0, err
		}
	}
	each := time.Since(begin) / time.Duration(probes)
	iters := []int64{int64(min(max(batch/max(each, 1), 1), most))}
	err := processgroup.AllReduce(ctx, t.g, iters, goccl.Min)
	return int(iters[0]), err
}
