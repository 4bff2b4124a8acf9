package dist_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/dist"
	processgroup "github.com/goccl/goccl/process_group"
)

// ok runs fn on n goroutine ranks, each with its job, and wants no error.
func ok(t *testing.T, n int, fn func(ctx context.Context, j *dist.Job) error) {
	t.Helper()
	for r, err := range each(t, n, dist.Config{}, func(ctx context.Context, g *dist.Group) error {
		j, found := dist.JobOf(ctx)
		if !found || j.World() != g {
			return fmt.Errorf("no job in the context")
		}
		return fn(ctx, j)
	}) {
		require.NoError(t, err, "rank %d", r)
	}
}

// members returns the job's ranks in g, in its order, as g itself gathers them.
func members(ctx context.Context, j *dist.Job, g *dist.Group) ([]int64, error) {
	all := make([]int64, g.Size())
	return all, processgroup.AllGather(ctx, g, all, []int64{int64(j.Rank())})
}

func TestNewKeepsTheOrderOfRanks(t *testing.T) {
	ok(t, 4, func(ctx context.Context, j *dist.Job) error {
		g, err := j.New(ctx, "odd", []int{3, 0, 1})
		if err != nil {
			return err
		}
		if j.Rank() == 2 {
			if g != nil {
				return fmt.Errorf("rank 2 is in the group")
			}
			return nil
		}
		all, err := members(ctx, j, g)
		if err == nil && fmt.Sprint(all) != "[3 0 1]" {
			err = fmt.Errorf("got %v", all)
		}
		return err
	})
}

// Groups of one name are told apart by the order in which they are made.
func TestNewTwiceWithOneName(t *testing.T) {
	ok(t, 4, func(ctx context.Context, j *dist.Job) error {
		var mine *dist.Group
		for _, ranks := range [][]int{{0, 1}, {2, 3}, {1, 2}} {
			g, err := j.New(ctx, "pair", ranks)
			if err != nil {
				return err
			}
			if g != nil {
				mine = g
				if err := exercise(ctx, g, 10); err != nil {
					return err
				}
			}
		}
		return mine.Close()
	})
}

func TestNewRefusesBadRanks(t *testing.T) {
	ok(t, 1, func(ctx context.Context, j *dist.Job) error {
		for _, c := range []struct {
			name  string
			ranks []int
		}{{"", []int{0}}, {"a", nil}, {"a", []int{1}}, {"a", []int{-1}}, {"a", []int{0, 0}}} {
			if _, err := j.New(ctx, c.name, c.ranks); err == nil || !isInvalid(err) {
				return fmt.Errorf("%q %v: %v", c.name, c.ranks, err)
			}
		}
		return nil
	})
}

func TestSplit(t *testing.T) {
	ok(t, 5, func(ctx context.Context, j *dist.Job) error {
		color, key := j.Rank()%2, -j.Rank()
		if j.Rank() == 1 {
			color = -1
		}
		g, err := j.Split(ctx, j.World(), color, key)
		if err != nil || j.Rank() == 1 {
			if g != nil {
				return fmt.Errorf("a negative color got a group")
			}
			return err
		}
		all, err := members(ctx, j, g)
		if err != nil {
			return err
		}
		if want := map[int]string{0: "[4 2 0]", 1: "[3]"}[color]; fmt.Sprint(all) != want {
			return fmt.Errorf("got %v, want %v", all, want)
		}
		// A split of a split, and of the same group again.
		sub, err := j.Split(ctx, g, 0, 0)
		if err != nil {
			return err
		}
		return exercise(ctx, sub, 10)
	})
}

func TestSplitRefusesAForeignGroup(t *testing.T) {
	ok(t, 1, func(ctx context.Context, j *dist.Job) error {
		return dist.Run(ctx, dist.Config{}, func(ctx context.Context, foreign *dist.Group) error {
			if _, err := j.Split(ctx, foreign, 0, 0); !isInvalid(err) {
				return fmt.Errorf("got %v", err)
			}
			return nil
		})
	})
}

func TestMesh(t *testing.T) {
	ok(t, 6, func(ctx context.Context, j *dist.Job) error {
		m, err := j.Mesh(ctx, j.World(), dist.Axis{Name: "pp", Size: 2}, dist.Axis{Name: "dp", Size: 3})
		if err != nil {
			return err
		}
		if m.Along("tp") != nil || m.Place("tp") != -1 {
			return fmt.Errorf("an axis that is not there")
		}
		for axis, want := range map[string]string{
			"pp": fmt.Sprint([]int{j.Rank() % 3, j.Rank()%3 + 3}),
			"dp": fmt.Sprint([]int{j.Rank() / 3 * 3, j.Rank()/3*3 + 1, j.Rank()/3*3 + 2}),
		} {
			all, err := members(ctx, j, m.Along(axis))
			if err != nil {
				return err
			}
			if fmt.Sprint(all) != want {
				return fmt.Errorf("along %s: got %v, want %s", axis, all, want)
			}
			if m.Place(axis) != m.Along(axis).Rank() {
				return fmt.Errorf("place on %s is %d", axis, m.Place(axis))
			}
		}
		for _, axes := range [][]dist.Axis{nil, {{Name: "a", Size: 5}}, {{Name: "a", Size: 3}, {Name: "a", Size: 2}}, {{Size: 6}}, {{Name: "a", Size: -6}}} {
			if _, err := j.Mesh(ctx, j.World(), axes...); !isInvalid(err) {
				return fmt.Errorf("axes %v: %v", axes, err)
			}
		}
		return nil
	})
}

func isInvalid(err error) bool { return errors.Is(err, goccl.ErrInvalid) }

// C15: groups made and closed in a loop leave no goroutine behind while the job
// goes on; those of the last ones end by themselves.
func TestC15GroupsMadeAndClosedInALoop(t *testing.T) {
	ok(t, 2, func(ctx context.Context, j *dist.Job) error {
		before := 0
		for i := range 30 {
			g, err := j.New(ctx, "again", []int{0, 1})
			if err != nil {
				return err
			}
			if err := errors.Join(sum(ctx, g, 10), g.Close()); err != nil {
				return err
			}
			if i == 5 {
				before = runtime.NumGoroutine()
			}
		}
		for i := 0; runtime.NumGoroutine() > before+20; i++ { // 30 groups have more than 100
			if i == 60_000 {
				return fmt.Errorf("%d goroutines after 5 groups, %d after 30", before, runtime.NumGoroutine())
			}
			time.Sleep(time.Millisecond)
		}
		return j.World().Barrier(ctx)
	})
}
