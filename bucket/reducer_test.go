package bucket

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/internal/leak"
	"github.com/goccl/goccl/process_group"
)

func TestMain(m *testing.M) { os.Exit(leak.Check(m)) }

// small makes several buckets of the model in tests.
var small = Config{FirstBytes: 100, Bytes: 800}

func TestAveragesEqualTheDefinition(t *testing.T) {
	for _, n := range []int{1, 2, 4} {
		for _, views := range []bool{true, false} {
			t.Run(fmt.Sprintf("ranks=%d/views=%v", n, views), func(t *testing.T) {
				onRanks(t, n, func(ctx context.Context, g *processgroup.Group) error {
					m := newNet(sizes, g.Rank())
					r, err := New(ctx, g, m.params(views), small)
					if err != nil {
						return err
					}
					for step := range 4 { // gradients in another order on each rank
						if err := backward(r, m, g.Rank(), step, shuffled(len(sizes), g.Rank(), step)); err != nil {
							return err
						}
						if err := r.Finish(ctx); err != nil {
							return err
						}
						if err := checkAverages(r, m, n, step); err != nil {
							return err
						}
					}
					return r.Close()
				})
			})
		}
	}
}

// New gives the values of one rank to all, frozen ones too.
func TestValuesComeFromOneRank(t *testing.T) {
	onRanks(t, 3, func(ctx context.Context, g *processgroup.Group) error {
		m := newNet(sizes, g.Rank())
		ps := m.params(true)
		ps[1].Frozen = true
		cfg := small
		cfg.SyncFrom = 2
		if _, err := New(ctx, g, ps, cfg); err != nil {
			return err
		}
		want := newNet(sizes, 2)
		for i := range sizes {
			if !slices.Equal(want.value[i], m.value[i]) {
				return fmt.Errorf("value %d is not that of rank 2", i)
			}
		}
		return nil
	})
}

// Gradients whose memory is not the bucket's go through a copy, and other memory
// in each step is as good.
func TestC87GradientsElsewhereAreCopied(t *testing.T) {
	const n = 3
	onRanks(t, n, func(ctx context.Context, g *processgroup.Group) error {
		m := newNet(sizes, g.Rank())
		r, err := New(ctx, g, m.params(true), small)
		if err != nil {
			return err
		}
		for step := range 3 {
			grads := make([]device.Buffer, len(sizes))
			for i, n := range sizes {
				s := make([]float32, n+1)[1:]
				for e := range s {
					s[e] = gradient(g.Rank(), step, i, e)
				}
				m.grad[i] = s
				grads[i] = device.SliceOf(s)
			}
			if err := r.Reduce(ctx, grads); err != nil {
				return err
			}
			for i := range sizes {
				for e, got := range m.grad[i] {
					if want := average(n, step, i, e); got-want > 1e-5*want || want-got > 1e-5*want {
						return fmt.Errorf("gradient %d[%d] is %v, want %v", i, e, got, want)
					}
				}
			}
		}
		return nil
	})
}

func TestReduceRefusesAnotherShape(t *testing.T) {
	errs := runRanks(t, 1, processgroup.Config{}, func(ctx context.Context, g *processgroup.Group) error {
		r, err := New(ctx, g, newNet(sizes[:1], 0).params(true), small)
		if err != nil {
			return err
		}
		return r.Reduce(ctx, []device.Buffer{device.SliceOf(make([]float32, 299))})
	})
	require.ErrorContains(t, errs[0], `gradient of "layer0.weight" is 299 x f32 on host, and 300 x f32 on host was declared`)
}

func TestFindUnused(t *testing.T) {
	const n, untouched = 3, float32(-77)
	onRanks(t, n, func(ctx context.Context, g *processgroup.Group) error {
		m := newNet(sizes, g.Rank())
		cfg := small
		cfg.FindUnused = true
		r, err := New(ctx, g, m.params(false), cfg)
		if err != nil {
			return err
		}
		for step := range 3 {
			for i := range sizes {
				for e := range m.grad[i] {
					m.grad[i][e] = untouched
				}
			}
			// 4 is used by none, 7 by rank 1 only.
			order := slices.DeleteFunc(shuffled(len(sizes), g.Rank(), step), func(i int) bool {
				return i == 4 || (i == 7 && g.Rank() != 1)
			})
			if err := errors.Join(backward(r, m, g.Rank(), step, order), r.Finish(ctx)); err != nil {
				return err
			}
			if r.Used(4) || !r.Used(7) || !r.Used(0) {
				return fmt.Errorf("used: %v %v %v", r.Used(4), r.Used(7), r.Used(0))
			}
			if m.grad[4][0] != untouched {
				return fmt.Errorf("a gradient that nobody has was changed to %v", m.grad[4][0])
			}
			if got, want := m.grad[7][3], gradient(1, step, 7, 3)/n; got-want > 1e-5 || want-got > 1e-5 {
				return fmt.Errorf("gradient of one rank: %v, want %v", got, want)
			}
		}
		return nil
	})
}

// Gradients are accumulated over passes and reduced once.
func TestNoSyncThenFinish(t *testing.T) {
	const n, passes = 2, 3
	onRanks(t, n, func(ctx context.Context, g *processgroup.Group) error {
		m := newNet(sizes, g.Rank())
		r, err := New(ctx, g, m.params(false), small)
		if err != nil {
			return err
		}
		add := func(pass int) error {
			for _, i := range shuffled(len(sizes), g.Rank(), pass) {
				for e := range m.grad[i] {
					m.grad[i][e] += gradient(g.Rank(), pass, i, e)
				}
				if err := r.Ready(i); err != nil {
					return err
				}
			}
			return r.Finish(ctx)
		}
		err = r.NoSync(func() error { return errors.Join(add(0), add(1)) })
		if err := errors.Join(err, add(2)); err != nil {
			return err
		}
		for i := range sizes {
			for e, got := range m.grad[i] {
				var want float32
				for p := range passes {
					want += average(n, p, i, e)
				}
				if got-want > 1e-5*want || want-got > 1e-5*want {
					return fmt.Errorf("gradient %d[%d] is %v, want %v", i, e, got, want)
				}
			}
		}
		if r.Stats().Step != 1 {
			return fmt.Errorf("%d steps", r.Stats().Step)
		}
		return nil
	})
}

// A Finish whose context ends leaves the step open; the next one completes it.
func TestFinishAgainAfterContext(t *testing.T) {
	const n = 2
	canceled := make(chan struct{})
	onRanks(t, n, func(ctx context.Context, g *processgroup.Group) error {
		m := newNet(sizes, g.Rank())
		r, err := New(ctx, g, m.params(false), small)
		if err != nil {
			return err
		}
		if g.Rank() == 1 { // late
			<-canceled
		}
		if err := backward(r, m, g.Rank(), 0, reversed(len(sizes))); err != nil {
			return err
		}
		if g.Rank() == 0 {
			over, cancel := context.WithCancelCause(ctx)
			cancel(errors.New("enough"))
			if err := r.Finish(over); err == nil || !strings.Contains(err.Error(), "enough") {
				return fmt.Errorf("with a context that ended: %v", err)
			}
			close(canceled)
		}
		return errors.Join(r.Finish(ctx), checkAverages(r, m, n, 0))
	})
}

// Buckets come in order with their averages in place.
func TestBucketsAsTheyComplete(t *testing.T) {
	const n = 2
	onRanks(t, n, func(ctx context.Context, g *processgroup.Group) error {
		m := newNet(sizes, g.Rank())
		r, err := New(ctx, g, m.params(true), small)
		if err != nil {
			return err
		}
		for step := range 2 {
			if err := backward(r, m, g.Rank(), step, reversed(len(sizes))); err != nil {
				return err
			}
			next, params := 0, 0
			for b := range r.Buckets() {
				if b.Index() != next || b.Last() != (next == len(r.buckets)-1) {
					return fmt.Errorf("bucket %d at place %d, last %v", b.Index(), next, b.Last())
				}
				for k, i := range b.Params() {
					got := make([]float32, b.View(k).Count)
					copyHost(device.SliceOf(got), b.View(k))
					if want := average(n, step, i, 0); got[0]-want > 1e-5 || want-got[0] > 1e-5 {
						return fmt.Errorf("%v: gradient %d is %v, want %v", b, i, got[0], want)
					}
					params++
				}
				next++
			}
			if params != len(sizes) {
				return fmt.Errorf("%d parameters", params)
			}
			if err := r.Finish(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestMixedTypesAndSparse(t *testing.T) {
	onRanks(t, 2, func(ctx context.Context, g *processgroup.Group) error {
		half := make([]goccl.BFloat16, 50)
		long := make([]float64, 20)
		emb := make([]float32, 40)
		ps := []Param{
			{Name: "emb", Grad: device.SliceOf(emb), Sparse: true},
			{Name: "half", Grad: device.SliceOf(half)},
			{Name: "long", Grad: device.SliceOf(long)},
			{Name: "mean", Value: device.SliceOf(make([]float32, 3)), Frozen: true},
		}
		r, err := New(ctx, g, ps, Config{})
		if err != nil {
			return err
		}
		for i := range half {
			half[i] = goccl.ToBFloat16(float32(i + 2*g.Rank()))
		}
		for i := range long {
			long[i] = float64(i + 4*g.Rank())
		}
		for i := range emb {
			emb[i] = float32(i * g.Rank())
		}
		if err := errors.Join(r.Ready(1), r.Ready(0), r.Ready(2), r.Finish(ctx)); err != nil {
			return err
		}
		if half[7].Float32() != 8 || long[7] != 9 || emb[8] != 4 {
			return fmt.Errorf("%v %v %v", half[7].Float32(), long[7], emb[8])
		}
		if err := r.Ready(3); !errors.Is(err, goccl.ErrInvalid) || !strings.Contains(err.Error(), `"mean"`) {
			return fmt.Errorf("a frozen parameter: %v", err)
		}
		return nil
	})
}

func TestRefusals(t *testing.T) {
	f := device.SliceOf(make([]float32, 4))
	cases := []struct {
		name string
		ps   []Param
		cfg  Config
		want string
	}{
		{"no name", []Param{{Value: f}}, Config{}, "parameter 0 has no name"},
		{"twice", []Param{{Name: "a", Value: f}, {Name: "a", Value: f}}, Config{}, `both called "a"`},
		{"nothing", []Param{{Name: "a"}}, Config{}, "neither Value nor Grad"},
		{"counts", []Param{{Name: "a", Value: f, Grad: device.SliceOf(make([]float32, 5))}}, Config{}, "4 elements and the gradient 5"},
		{"type", []Param{{Name: "a", Value: device.FromPointer(64, 4, goccl.F8E4M3, device.ID{}, nil)}}, Config{}, "cannot be summed"},
		{"device", []Param{{Name: "a", Grad: device.FromPointer(64, 4, goccl.F32, device.ID{Kind: device.CUDA}, nil)}}, Config{}, "on cuda:0"},
		{"tied", []Param{{Name: "a", Grad: f}, {Name: "b", Grad: f}}, Config{}, `"a" and "b" have one gradient`},
		{"frozen", []Param{{Name: "a", Grad: f, Frozen: true}}, Config{}, "no Value"},
		{"sizes", nil, Config{Bytes: -1}, "bucket sizes"},
		{"root", nil, Config{SyncFrom: 1}, "SyncFrom is rank 1 of a group of 1"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			errs := runRanks(t, 1, processgroup.Config{}, func(ctx context.Context, g *processgroup.Group) error {
				_, err := New(ctx, g, c.ps, c.cfg)
				return err
			})
			require.ErrorContains(t, errs[0], c.want)
		})
	}
}

func TestAfterClose(t *testing.T) {
	onRanks(t, 1, func(ctx context.Context, g *processgroup.Group) error {
		r, err := New(ctx, g, newNet(sizes, 0).params(true), small)
		if err != nil {
			return err
		}
		if err := errors.Join(r.Close(), r.Close()); err != nil {
			return err
		}
		for _, err := range []error{r.Ready(0), r.Finish(ctx), r.Apply(ctx, Hold())} {
			if !errors.Is(err, goccl.ErrClosed) {
				return fmt.Errorf("after Close: %v", err)
			}
		}
		return nil
	})
}

func TestStatsAndExposed(t *testing.T) {
	onRanks(t, 2, func(ctx context.Context, g *processgroup.Group) error {
		m := newNet(sizes, g.Rank())
		r, err := New(ctx, g, m.params(true), small)
		if err != nil {
			return err
		}
		r.Begin()
		if err := errors.Join(backward(r, m, g.Rank(), 0, reversed(len(sizes))), r.Finish(ctx)); err != nil {
			return err
		}
		s := r.Stats()
		var bytes int64
		params := 0
		for b, k := range s.Buckets {
			if k.Launched < k.Ready || k.Done < k.Launched || k.Done > s.Total {
				return fmt.Errorf("bucket %d: %+v of %v", b, k, s.Total)
			}
			bytes, params = bytes+k.Bytes, params+k.Params
		}
		if bytes != 4*850 || params != len(sizes) || s.Step != 1 || s.Active != 2 || s.Blocked > s.Total {
			return fmt.Errorf("%+v: %d bytes", s, bytes)
		}
		return nil
	})
	ms := time.Millisecond
	require.Equal(t, 4*ms, Exposed([]time.Duration{10 * ms, 50 * ms, 12 * ms}, []time.Duration{6 * ms, 6 * ms, 9 * ms}))
	require.Equal(t, 2*ms, Exposed([]time.Duration{3 * ms, 3 * ms}, []time.Duration{2 * ms, 0}))
	require.Zero(t, Exposed(nil, nil))
}

// Empty tensors and models without a gradient are no special case for the caller.
func TestNothingToReduce(t *testing.T) {
	for _, sizes := range [][]int{{}, {0}, {0, 5, 0}} {
		for _, frozen := range []bool{false, true} {
			onRanks(t, 2, func(ctx context.Context, g *processgroup.Group) error {
				m := newNet(sizes, g.Rank())
				ps := m.params(true)
				for i := range ps {
					ps[i].Frozen = frozen
				}
				cfg := small
				cfg.Uneven, cfg.FindUnused = true, true
				r, err := New(ctx, g, ps, cfg)
				if err != nil {
					return err
				}
				for step := range 2 {
					if !frozen {
						err = errors.Join(backward(r, m, g.Rank(), step, reversed(len(sizes))), r.Finish(ctx), checkAverages(r, m, 2, step))
					} else {
						err = r.Finish(ctx)
					}
					if err != nil {
						return err
					}
				}
				return errors.Join(r.Join(ctx, nil), r.Close())
			})
		}
	}
}
