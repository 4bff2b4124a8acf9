package hook_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/bucket"
	"github.com/goccl/goccl/bucket/hook"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/internal/leak"
	"github.com/goccl/goccl/process_group"
	"github.com/goccl/goccl/process_group/backend/fake"
)

func TestMain(m *testing.M) { os.Exit(leak.Check(m)) }

// onRanks runs fn for each rank of a group of n; its errors fail the test.
func onRanks(t *testing.T, n int, fn func(ctx context.Context, g *processgroup.Group) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	groups := fake.Groups(n, processgroup.Config{})
	errs := make([]error, n)
	var wg sync.WaitGroup
	for r, g := range groups {
		wg.Go(func() { errs[r] = fn(ctx, g) })
	}
	wg.Wait()
	for r, g := range groups {
		require.NoError(t, errors.Join(errs[r], g.Close()), "rank %d", r)
	}
}

// model is three f32 gradients and one of integers, in two buckets and more.
type model struct {
	grads [][]float32
	ints  []int32
}

func newModel() *model {
	return &model{grads: [][]float32{make([]float32, 100), make([]float32, 33), make([]float32, 7)}, ints: make([]int32, 9)}
}

func (m *model) params() []bucket.Param {
	ps := []bucket.Param{{Name: "ints", Grad: device.SliceOf(m.ints)}}
	for i, g := range m.grads {
		ps = append(ps, bucket.Param{Name: fmt.Sprintf("w%d", i), Grad: device.SliceOf(g)})
	}
	return ps
}

func value(rank, step, i, e int) float32 {
	return (float32(e) - 20) * (1 + 0.37*float32(rank)) * (1 + float32(i+step)/3)
}

func (m *model) step(ctx context.Context, r *bucket.Reducer, rank, step int) error {
	for i, g := range m.grads {
		for e := range g {
			g[e] = value(rank, step, i, e)
		}
	}
	for e := range m.ints {
		m.ints[e] = int32(1000*e + 2*rank)
	}
	for i := len(m.grads); i >= 0; i-- {
		if err := r.Ready(i); err != nil {
			return err
		}
	}
	return r.Finish(ctx)
}

func TestCompressedAverages(t *testing.T) {
	const n = 3
	for _, c := range []struct {
		make func() *hook.Compress
		unit float64 // of rounding, relative
	}{{hook.F16, 1.0 / (1 << 11)}, {hook.BF16, 1.0 / (1 << 8)}} {
		t.Run(c.make().String(), func(t *testing.T) {
			onRanks(t, n, func(ctx context.Context, g *processgroup.Group) error {
				m := newModel()
				r, err := bucket.New(ctx, g, m.params(), bucket.Config{FirstBytes: 100, Bytes: 200, Hook: c.make()})
				if err != nil {
					return err
				}
				for step := range 3 { // the buckets are laid out anew after the first
					if err := m.step(ctx, r, g.Rank(), step); err != nil {
						return err
					}
					for i, grads := range m.grads {
						for e, got := range grads {
							var want, size float64
							for q := range n {
								want += float64(value(q, step, i, e)) / n
								size += math.Abs(float64(value(q, step, i, e))) / n
							}
							// One rounding on each rank and one per addition.
							if math.Abs(float64(got)-want) > 2*n*c.unit*size {
								return fmt.Errorf("step %d: w%d[%d] is %v, want %v", step, i, e, got, want)
							}
						}
					}
					if m.ints[4] != 4002 {
						return fmt.Errorf("integers are averaged as they are: %v", m.ints)
					}
				}
				return r.Close()
			})
		})
	}
}

// A sum of large gradients stays in the range of a half.
func TestF16DividesBeforeItSums(t *testing.T) {
	onRanks(t, 4, func(ctx context.Context, g *processgroup.Group) error {
		s := []float32{40000, -60000}
		r, err := bucket.New(ctx, g, []bucket.Param{{Name: "w", Grad: device.SliceOf(s)}}, bucket.Config{Hook: hook.F16()})
		if err != nil {
			return err
		}
		if err := errors.Join(r.Ready(0), r.Finish(ctx)); err != nil {
			return err
		}
		if s[0] != 40000 || s[1] != -60000 {
			return fmt.Errorf("%v", s)
		}
		return nil
	})
}

func TestNoCommKeepsOwnGradients(t *testing.T) {
	onRanks(t, 2, func(ctx context.Context, g *processgroup.Group) error {
		m := newModel()
		r, err := bucket.New(ctx, g, m.params(), bucket.Config{Hook: hook.NoComm{}})
		if err != nil {
			return err
		}
		for step := range 2 {
			if err := m.step(ctx, r, g.Rank(), step); err != nil {
				return err
			}
			if got, want := m.grads[1][5], value(g.Rank(), step, 1, 5); got != want {
				return fmt.Errorf("%v, want %v", got, want)
			}
		}
		return nil
	})
}

// Different hooks on two ranks would send different operations.
func TestHooksAreCompared(t *testing.T) {
	onRanks(t, 2, func(ctx context.Context, g *processgroup.Group) error {
		cfg := bucket.Config{Hook: hook.F16()}
		if g.Rank() == 1 {
			cfg.Hook = hook.BF16()
		}
		_, err := bucket.New(ctx, g, newModel().params(), cfg)
		if !errors.Is(err, goccl.ErrMismatch) {
			return fmt.Errorf("different hooks: %v", err)
		}
		return nil
	})
}
