package bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/process_group"
)

// A rank whose gradients are missing says so at once, by name, and so do all
// others: none waits for a bucket that will not come.
func TestC85MissingGradientsAreNamed(t *testing.T) {
	errs := runRanks(t, 3, processgroup.Config{}, func(ctx context.Context, g *processgroup.Group) error {
		m := newNet(sizes, g.Rank())
		r, err := New(ctx, g, m.params(true), small)
		if err != nil {
			return err
		}
		order := shuffled(len(sizes), g.Rank(), 0)
		if g.Rank() == 1 {
			order = slices.DeleteFunc(order, func(i int) bool { return i == 2 || i == 5 })
		}
		if err := backward(r, m, g.Rank(), 0, order); err != nil {
			return err
		}
		return r.Finish(ctx)
	})
	for r, err := range errs {
		require.ErrorContains(t, err, "2 of 9 gradients never became ready: layer2.weight, layer5.weight", "rank %d", r)
		require.ErrorContains(t, err, "rank 1")
		require.ErrorIs(t, err, goccl.ErrInvalid)
	}
}

// A rank that stays away is named by the group's timeout, and the warning before
// that says which gradients are waited for.
func TestC88StalledGradientIsNamed(t *testing.T) {
	var logs syncBuffer
	gone := make(chan struct{})
	errs := runRanks(t, 3, processgroup.Config{Timeout: 300 * time.Millisecond}, func(ctx context.Context, g *processgroup.Group) error {
		m := newNet(sizes, g.Rank())
		cfg := small
		cfg.StallAfter = 20 * time.Millisecond
		cfg.Logger = slog.New(slog.NewTextHandler(&logs, nil))
		r, err := New(ctx, g, m.params(true), cfg)
		if err != nil {
			return err
		}
		if g.Rank() == 2 {
			<-gone
			return r.Close()
		}
		if err := backward(r, m, g.Rank(), 0, reversed(len(sizes))); err != nil {
			return err
		}
		if err = r.Finish(ctx); g.Rank() == 0 {
			close(gone)
		}
		return err
	})
	for r := range 2 {
		require.ErrorIs(t, errs[r], goccl.ErrTimeout)
		require.ErrorContains(t, errs[r], "rank 2")
		require.ErrorContains(t, errs[r], "bucket 0 (layer8.weight")
	}
	require.Contains(t, logs.String(), "bucket: Finish is waiting")
	require.Contains(t, logs.String(), "layer8.weight")
}

func TestTwiceFailsAllRanks(t *testing.T) {
	errs := runRanks(t, 2, processgroup.Config{}, func(ctx context.Context, g *processgroup.Group) error {
		m := newNet(sizes, g.Rank())
		r, err := New(ctx, g, m.params(false), small)
		if err != nil {
			return err
		}
		if g.Rank() == 1 {
			_ = r.Ready(3) // the second announcement is what counts
			return r.Ready(3)
		}
		return errors.Join(backward(r, m, 0, 0, reversed(len(sizes))), r.Finish(ctx))
	})
	for _, err := range errs {
		require.ErrorContains(t, err, `gradient of "layer3.weight" became ready twice`)
	}
}

// Ranks run out of input at different steps and all end with the same
// parameters. Averages are over the whole group.
func TestC84UnevenInputs(t *testing.T) {
	const n = 3
	steps := []int{5, 2, 0}
	var mu sync.Mutex
	sums := map[string]int{}
	onRanks(t, n, func(ctx context.Context, g *processgroup.Group) error {
		m := newNet(sizes, 0)
		cfg := small
		cfg.Uneven = true
		r, err := New(ctx, g, m.params(false), cfg)
		if err != nil {
			return err
		}
		taken := 0
		apply := func() error {
			active := 0
			for _, s := range steps {
				if taken < s {
					active++
				}
			}
			if got := r.Stats().Active; got != active {
				return fmt.Errorf("step %d has %d ranks with input, want %d", taken, got, active)
			}
			for i := range sizes {
				for e := range m.value[i] {
					var want float64
					for q, s := range steps {
						if taken < s {
							want += float64(gradient(q, taken, i, e)) / n
						}
					}
					if d := float64(m.grad[i][e]) - want; d > 1e-5*want || d < -1e-5*want {
						return fmt.Errorf("step %d: gradient %d[%d] is %v, want %v", taken, i, e, m.grad[i][e], want)
					}
					m.value[i][e] -= m.grad[i][e]
				}
			}
			taken++
			return nil
		}
		for step := range steps[g.Rank()] {
			if err := errors.Join(backward(r, m, g.Rank(), step, shuffled(len(sizes), g.Rank(), step)), r.Finish(ctx), apply()); err != nil {
				return err
			}
		}
		if err := r.Join(ctx, apply); err != nil {
			return err
		}
		if taken != slices.Max(steps) {
			return fmt.Errorf("%d steps", taken)
		}
		mu.Lock()
		defer mu.Unlock()
		sums[fmt.Sprint(m.value)]++
		return nil
	})
	require.Len(t, sums, 1)
}

func TestMismatchIsNamedOnAllRanks(t *testing.T) {
	cases := []struct {
		name   string
		change func(ps []Param, cfg *Config)
		want   string
	}{
		{"count", func(ps []Param, _ *Config) { ps[4].Value = device.SliceOf(make([]float32, 34)) },
			`parameters, line 5: rank 0 has "layer4.weight" f32 x 33, value f32; rank 2 has "layer4.weight" f32 x 34, value f32`},
		{"dtype", func(ps []Param, _ *Config) { ps[0].Value = device.SliceOf(make([]float64, 300)) },
			`rank 0 has "layer0.weight" f32 x 300, value f32; rank 2 has "layer0.weight" f64 x 300, value f64`},
		{"order", func(ps []Param, _ *Config) { ps[1], ps[2] = ps[2], ps[1] }, `line 2: rank 0 has "layer1.weight"`},
		{"fewer", func(ps []Param, _ *Config) { ps[8].Frozen = true }, `rank 2 has "layer8.weight" f32 x 10 frozen`},
		{"config", func(_ []Param, cfg *Config) { cfg.Bytes = 900 }, `line 0: rank 0 has config first 100 bytes 800`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			errs := runRanks(t, 4, processgroup.Config{}, func(ctx context.Context, g *processgroup.Group) error {
				ps, cfg := newNet(sizes, g.Rank()).params(true), small
				if g.Rank() == 2 {
					c.change(ps, &cfg)
				}
				_, err := New(ctx, g, ps, cfg)
				return err
			})
			for r, err := range errs {
				require.ErrorIs(t, err, goccl.ErrMismatch, "rank %d", r)
				require.ErrorContains(t, err, c.want, "rank %d", r)
				var e *goccl.Error
				require.ErrorAs(t, err, &e)
				require.Equal(t, "bucket.New", e.Op)
			}
		})
	}
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
