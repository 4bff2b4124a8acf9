package bucket

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/process_group"
)

// The rebuild follows rank 0's order on all ranks, whatever their own.
func TestRebuildIsTheSameOnAllRanks(t *testing.T) {
	const n = 4
	var mu sync.Mutex
	layouts := map[string]int{}
	order := []int{3, 0, 8, 5, 1, 7, 2, 6, 4}
	onRanks(t, n, func(ctx context.Context, g *processgroup.Group) error {
		m := newNet(sizes, g.Rank())
		r, err := New(ctx, g, m.params(true), small)
		if err != nil {
			return err
		}
		before := r.State()
		mine := order
		if g.Rank() > 0 {
			mine = shuffled(len(sizes), g.Rank(), 1)
		}
		if err := errors.Join(backward(r, m, g.Rank(), 0, mine), r.Finish(ctx)); err != nil {
			return err
		}
		after := r.State()
		if before.Rebuilt || !after.Rebuilt {
			return fmt.Errorf("rebuilt %v before and %v after the first step", before.Rebuilt, after.Rebuilt)
		}
		if got := r.present(); !slices.Equal(got, order) {
			return fmt.Errorf("order %v, want %v", got, order)
		}
		if err := checkAverages(r, m, n, 0); err != nil {
			return fmt.Errorf("averages did not move along: %w", err)
		}
		mu.Lock()
		defer mu.Unlock()
		layouts[fmt.Sprint(after.Buckets)]++
		return nil
	})
	require.Len(t, layouts, 1)
}

// The same layout gives the same bits, with overlap and without.
func TestOverlapDoesNotChangeBits(t *testing.T) {
	const n = 4
	onRanks(t, n, func(ctx context.Context, g *processgroup.Group) error {
		m := newNet(sizes, g.Rank())
		r, err := New(ctx, g, m.params(true), small)
		if err != nil {
			return err
		}
		var first [][]float32
		for k, l := range []Layout{Overlap(), Hold(), Overlap()} {
			if err := r.Apply(ctx, l); err != nil {
				return err
			}
			for range 2 { // the first of all is before the rebuild
				if err := errors.Join(backward(r, m, g.Rank(), 0, shuffled(len(sizes), g.Rank(), k)), r.Finish(ctx)); err != nil {
					return err
				}
			}
			for i := range sizes {
				if k == 0 {
					first = append(first, result(r, m, i))
				} else if !slices.Equal(first[i], result(r, m, i)) {
					return fmt.Errorf("%v: gradient %d differs", l, i)
				}
			}
		}
		return nil
	})
}

func TestApply(t *testing.T) {
	const n = 2
	onRanks(t, n, func(ctx context.Context, g *processgroup.Group) error {
		m := newNet(sizes, g.Rank())
		r, err := New(ctx, g, m.params(true), small)
		if err != nil {
			return err
		}
		for step, c := range []struct {
			l       Layout
			buckets int
		}{{Cap(1<<20, 1<<20), 1}, {Cap(1, 1), len(sizes)}, {Bounds(1, 4), 3}, {Hold(), 3}} {
			if err := r.Apply(ctx, c.l); err != nil {
				return err
			}
			if err := errors.Join(backward(r, m, g.Rank(), step, shuffled(len(sizes), g.Rank(), step)), r.Finish(ctx)); err != nil {
				return err
			}
			if err := checkAverages(r, m, n, step); err != nil {
				return fmt.Errorf("%v: %w", c.l, err)
			}
			s := r.Stats()
			if len(s.Buckets) != c.buckets {
				return fmt.Errorf("%v: %d buckets, want %d", c.l, len(s.Buckets), c.buckets)
			}
		}
		if err := r.Apply(ctx, NoComm()); err != nil {
			return err
		}
		if err := errors.Join(backward(r, m, g.Rank(), 9, reversed(len(sizes))), r.Finish(ctx)); err != nil {
			return err
		}
		if got, want := result(r, m, 5)[2], gradient(g.Rank(), 9, 5, 2); got != want {
			return fmt.Errorf("without the wire a gradient is this rank's: %v, want %v", got, want)
		}
		err = r.Apply(ctx, Layout{})
		if !errors.Is(err, goccl.ErrInvalid) {
			return fmt.Errorf("the zero layout: %v", err)
		}
		other := Cap(int64(g.Rank()+1), 5)
		if err := r.Apply(ctx, other); !errors.Is(err, goccl.ErrMismatch) || !strings.Contains(err.Error(), "rank 0 has cap(1,5); rank 1 has cap(2,5)") {
			return fmt.Errorf("different layouts: %v", err)
		}
		return r.Apply(ctx, Overlap())
	})
}

// A layout outlives the job and the number of ranks.
func TestStateRestores(t *testing.T) {
	var text []byte
	step := func(ctx context.Context, g *processgroup.Group, r *Reducer, m *net, k int) error {
		return errors.Join(backward(r, m, g.Rank(), k, shuffled(len(sizes), 3, 3)), r.Finish(ctx), checkAverages(r, m, g.Size(), k))
	}
	onRanks(t, 3, func(ctx context.Context, g *processgroup.Group) error {
		m := newNet(sizes, g.Rank())
		r, err := New(ctx, g, m.params(true), small)
		if err != nil {
			return err
		}
		if err := step(ctx, g, r, m, 0); err != nil {
			return err
		}
		if g.Rank() == 0 {
			text, err = json.Marshal(r.State())
		}
		return err
	})
	onRanks(t, 2, func(ctx context.Context, g *processgroup.Group) error {
		m := newNet(sizes, g.Rank())
		r, err := New(ctx, g, m.params(true), small)
		if err != nil {
			return err
		}
		var s State
		if err := errors.Join(json.Unmarshal(text, &s), r.Restore(ctx, s), step(ctx, g, r, m, 1)); err != nil {
			return err
		}
		again, err := json.Marshal(r.State())
		if err != nil {
			return err
		}
		s.Step++
		if want, _ := json.Marshal(s); !bytes.Equal(want, again) {
			return fmt.Errorf("%s, want %s", again, want)
		}
		s.Buckets[0][0] = "nosuch"
		if err := r.Restore(ctx, s); !errors.Is(err, goccl.ErrInvalid) || !strings.Contains(err.Error(), `"nosuch"`) {
			return fmt.Errorf("a foreign state: %v", err)
		}
		return step(ctx, g, r, m, 2)
	})
}
