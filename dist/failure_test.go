package dist_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/dist"
)

// each runs fn on n goroutine ranks and returns what Run would on each.
func each(t *testing.T, n int, cfg dist.Config, fn func(ctx context.Context, g *dist.Group) error) []error {
	t.Helper()
	jobs, err := dist.InitLocal(t.Context(), n, cfg)
	require.NoError(t, err)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for r, j := range jobs {
		wg.Go(func() { errs[r] = j.Run(t.Context(), fn) })
	}
	wg.Wait()
	return errs
}

func firstLine(err error) string {
	if err == nil {
		return ""
	}
	s, _, _ := strings.Cut(err.Error(), "\n")
	return s
}

// sameSentence checks that all ranks tell of the failure in the same words.
func sameSentence(t *testing.T, errs []error, want string) {
	t.Helper()
	for r, err := range errs {
		require.Error(t, err, "rank %d", r)
		require.Equal(t, want, firstLine(err), "rank %d", r)
		require.ErrorIs(t, err, goccl.ErrAborted, "rank %d", r)
	}
}

func me(t *testing.T) string {
	host, err := os.Hostname()
	require.NoError(t, err)
	return fmt.Sprintf("%s, pid %d", host, os.Getpid())
}

func sum(ctx context.Context, g *dist.Group, n int) error {
	s := make([]float32, n)
	for i := range s {
		s[i] = float32(i + g.Rank())
	}
	return g.AllReduce(device.SliceOf(s), goccl.Sum).Wait(ctx)
}

func TestErrorOfOneRankEndsAll(t *testing.T) {
	why := errors.New("the data set has no more pages")
	errs := each(t, 4, dist.Config{}, func(ctx context.Context, g *dist.Group) error {
		if g.Rank() == 2 {
			return why
		}
		for {
			if err := sum(ctx, g, 100); err != nil {
				return fmt.Errorf("training: %w", err)
			}
		}
	})
	sameSentence(t, errs, fmt.Sprintf("goccl: rank 2 (%s) failed: the data set has no more pages", me(t)))
	require.ErrorIs(t, errs[2], why)
	require.Contains(t, errs[1].Error(), "training")
}

func TestPanicOfOneRankEndsAll(t *testing.T) {
	errs := each(t, 4, dist.Config{}, func(ctx context.Context, g *dist.Group) error {
		if g.Rank() == 1 {
			explode(g)
		}
		<-ctx.Done()
		return context.Cause(ctx)
	})
	sameSentence(t, errs, fmt.Sprintf("goccl: rank 1 (%s) failed: panic: index 3 of nothing", me(t)))
	var p *dist.PanicError
	require.ErrorAs(t, errs[1], &p)
	require.Contains(t, string(p.Stack), "dist_test.explode")
	require.Contains(t, errs[1].Error(), "dist_test.explode", "the guilty rank shows where")
	require.NotContains(t, errs[0].Error(), "dist_test.explode")
}

func explode(g *dist.Group) { panic(fmt.Sprintf("index %d of nothing", g.Rank()+2)) }

func TestGoexitOfOneRankEndsAll(t *testing.T) {
	errs := each(t, 2, dist.Config{}, func(ctx context.Context, g *dist.Group) error {
		if g.Rank() == 1 {
			dist.Goexit()
		}
		return g.Barrier(ctx)
	})
	require.Contains(t, firstLine(errs[0]), "rank 1 ("+me(t)+") failed: ")
	require.Contains(t, firstLine(errs[0]), "FailNow")
	require.Equal(t, firstLine(errs[0]), firstLine(errs[1]))
}

// What ends the world ends the groups made of its ranks, too.
func TestFailureOfTheWorldEndsItsGroups(t *testing.T) {
	errs := each(t, 3, dist.Config{}, func(ctx context.Context, g *dist.Group) error {
		j, _ := dist.JobOf(ctx)
		pair, err := j.New(ctx, "pair", []int{0, 1})
		if err != nil {
			return err
		}
		switch g.Rank() {
		case 0:
			return pair.Barrier(context.Background()) // rank 1 never comes
		case 1:
			<-ctx.Done()
			return context.Cause(ctx)
		}
		return errors.New("no disk")
	})
	sameSentence(t, errs, fmt.Sprintf("goccl: rank 2 (%s) failed: no disk", me(t)))
}

// A rank that returns early is named by those that still need it.
func TestC29RankThatLeavesEarlyIsNamed(t *testing.T) {
	t.Parallel()
	errs := each(t, 3, dist.Config{}, func(ctx context.Context, g *dist.Group) error {
		if g.Rank() == 0 {
			return nil
		}
		return sum(ctx, g, 1000)
	})
	require.NoError(t, errs[0])
	for _, r := range []int{1, 2} {
		require.ErrorIs(t, errs[r], goccl.ErrPeerLost)
		require.Contains(t, firstLine(errs[r]), "peer 0 (host "+me(t)+")")
	}
}

// C29: rank 0 has the store and the rendezvous and is done first.
func TestC29RankZeroServesUntilAllHaveLeft(t *testing.T) {
	release := make(chan struct{})
	errs := each(t, 3, dist.Config{}, func(ctx context.Context, g *dist.Group) error {
		if err := g.Barrier(ctx); err != nil || g.Rank() == 0 {
			close(release)
			return err
		}
		<-release
		j, _ := dist.JobOf(ctx)
		pair, err := j.New(ctx, "late", []int{1, 2})
		if err != nil {
			return err
		}
		return sum(ctx, pair, 10)
	})
	for _, err := range errs {
		require.NoError(t, err)
	}
}

func TestC81MonitoredBarrierNamesAllMissing(t *testing.T) {
	errs := each(t, 4, dist.Config{}, func(ctx context.Context, g *dist.Group) error {
		if g.Rank() >= 2 {
			<-ctx.Done()
			return nil
		}
		short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		return g.MonitoredBarrier(short)
	})
	for _, r := range []int{0, 1} {
		var e *goccl.Error
		require.ErrorAs(t, errs[r], &e)
		require.ErrorIs(t, errs[r], goccl.ErrTimeout)
		require.Equal(t, []int{2, 3}, e.Missing)
	}
}

func TestC09MissingRankOfAGroupIsNamed(t *testing.T) {
	t.Parallel()
	errs := each(t, 4, dist.Config{Timeout: 300 * time.Millisecond}, func(ctx context.Context, g *dist.Group) error {
		j, _ := dist.JobOf(ctx)
		if g.Rank() == 3 || g.Rank() == 2 { // rank 3, the first of the group, and rank 2 never make it
			<-ctx.Done()
			return nil
		}
		_, err := j.New(ctx, "late", []int{3, 1, 2, 0})
		return err
	})
	for _, r := range []int{0, 1} {
		var e *goccl.Error
		require.ErrorAs(t, errs[r], &e)
		require.ErrorIs(t, errs[r], goccl.ErrTimeout)
		require.Subset(t, []int{3, 2, 0, 1}, e.Missing)
		require.Contains(t, e.Missing, 3)
		require.Contains(t, e.Missing, 2)
	}
}

func TestGroupsOfDifferentRanksAreRefused(t *testing.T) {
	errs := each(t, 3, dist.Config{}, func(ctx context.Context, g *dist.Group) error {
		j, _ := dist.JobOf(ctx)
		ranks := []int{0, 1, 2}
		if g.Rank() == 1 {
			ranks = []int{0, 2, 1}
		}
		_, err := j.New(ctx, "odd", ranks)
		return err
	})
	want := `goccl: ranks disagree on who is in group "odd": rank 0 says ranks 0, 1, 2, rank 1 says ranks 0, 2, 1; all ranks must make the same groups in the same order`
	require.ErrorIs(t, errs[1], goccl.ErrMismatch)
	for _, err := range errs {
		require.ErrorContains(t, err, want)
	}
}

func TestC75ForcedAlgorithmsMustAgree(t *testing.T) {
	_, err := dist.InitRanks(t.Context(), 3, dist.Config{}, func(r int, c *dist.Config) {
		if r == 1 {
			c.Tuning.Algorithm = goccl.Ring
		}
	})
	require.ErrorIs(t, err, goccl.ErrMismatch)
	require.ErrorContains(t, err, `goccl: ranks disagree on GOCCL_ALGO: "ring" on rank 1, not set on ranks 0, 2; set it the same everywhere`)
}
