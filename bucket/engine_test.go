package bucket

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
)

// fakeWork ends when its gate is closed. With a nil gate it has ended.
type fakeWork struct {
	gate chan struct{}
	err  error
}

func (w fakeWork) Test() (bool, error) {
	if w.gate == nil {
		return true, w.err
	}
	select {
	case <-w.gate:
		return true, w.err
	default:
		return false, nil
	}
}

func (w fakeWork) Wait(ctx context.Context) error {
	if w.gate == nil {
		return w.err
	}
	select {
	case <-w.gate:
		return w.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// fakeEffects notes what the engine asks for. Fills are plain writes, so that the
// race detector sees whether a start comes after the fills of its bucket.
type fakeEffects struct {
	m       *machine
	filled  []int
	works   []fakeWork
	starts  []int
	inStart atomic.Int32
	next    func(b int) fakeWork
	t       *testing.T
}

func (f *fakeEffects) fill(i int) error    { f.filled[i]++; return nil }
func (f *fakeEffects) zero(i int) error    { f.filled[i] = -1; return nil }
func (f *fakeEffects) work(b int) fakeWork { return f.works[b] }
func (f *fakeEffects) start(b int) {
	if f.inStart.Add(1) != 1 {
		f.t.Error("two starts at once")
	}
	defer f.inStart.Add(-1)
	for _, i := range f.m.members[b] {
		if f.filled[i] == 0 {
			f.t.Errorf("bucket %d started before gradient %d was filled", b, i)
		}
	}
	f.starts = append(f.starts, b)
	f.works[b] = f.next(b)
}

func newFake(t *testing.T, buckets [][]int, md mode, next func(b int) fakeWork) (*engine[fakeWork], *fakeEffects) {
	n := len(flatten(buckets))
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("p%d", i)
	}
	m := newMachine(names, buckets, md)
	f := &fakeEffects{m: m, filled: make([]int, n), works: make([]fakeWork, len(buckets)), next: next, t: t}
	return newEngine(f, m, time.Now), f
}

func ended(int) fakeWork { return fakeWork{} }

// chunks makes buckets of k of n gradients, in reverse.
func chunks(n, k int) [][]int {
	var out [][]int
	for i := n; i > 0; i -= k {
		var b []int
		for j := i - 1; j >= max(0, i-k); j-- {
			b = append(b, j)
		}
		out = append(out, b)
	}
	return out
}

// Ready comes from many goroutines in any order; buckets start one at a time, in
// order, after their gradients are in place.
func TestReadyFromManyGoroutines(t *testing.T) {
	const n, workers = 257, 8
	e, f := newFake(t, chunks(n, 5), mode{}, ended)
	for step := range 20 {
		f.starts = f.starts[:0]
		clear(f.filled)
		order := rand.New(rand.NewPCG(uint64(step), 7)).Perm(n)
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				for k := w; k < n; k += workers {
					if err := e.ready(order[k]); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		require.NoError(t, e.finish())
		for b := range f.works {
			require.Equal(t, b, f.starts[b])
			_, err := e.settle(t.Context(), b)
			require.NoError(t, err)
		}
		for i, k := range f.filled {
			require.Equal(t, 1, k, "gradient %d", i)
		}
		e.next(nil)
	}
}

// Two goroutines announce the same gradient at once: exactly one is told.
func TestReadyTwiceAtOnce(t *testing.T) {
	e, f := newFake(t, [][]int{{0, 1}}, mode{}, ended)
	var failures atomic.Int32
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			if err := e.ready(1); err != nil {
				failures.Add(1)
			}
		})
	}
	wg.Wait()
	// The first may also be told, when the second was faster to fail the step.
	require.GreaterOrEqual(t, failures.Load(), int32(1))
	require.Equal(t, 1, f.filled[1], "the second announcement copies nothing")
	require.ErrorContains(t, e.finish(), `"p1" became ready twice`)
}

func TestReadyAllocatesNothing(t *testing.T) {
	const runs = 100
	e, f := newFake(t, chunks(2*runs, 4), mode{}, ended)
	f.starts = make([]int, 0, runs)
	i := 2 * runs
	require.Zero(t, testing.AllocsPerRun(runs, func() {
		i--
		if e.ready(i) != nil {
			t.Fail()
		}
	}))
}

// A Ready that finds another goroutine starting a bucket leaves its own bucket to
// that one and returns.
func TestReadyDoesNotWaitForAStart(t *testing.T) {
	inside, leave := make(chan struct{}), make(chan struct{})
	e, f := newFake(t, [][]int{{0}, {1}}, mode{}, func(b int) fakeWork {
		if b == 0 {
			close(inside)
			<-leave
		}
		return fakeWork{}
	})
	first := make(chan error, 1)
	go func() { first <- e.ready(0) }()
	<-inside
	require.NoError(t, e.ready(1))
	close(leave)
	require.NoError(t, <-first)
	require.Equal(t, []int{0, 1}, f.starts)
}

// Work goes on from Ready: the end of a bucket is seen there.
func TestReadyPushesOperations(t *testing.T) {
	gate := make(chan struct{})
	e, _ := newFake(t, [][]int{{0}, {1}, {2}}, mode{}, func(int) fakeWork { return fakeWork{gate: gate} })
	require.NoError(t, e.ready(0))
	require.NoError(t, e.ready(1))
	require.Zero(t, e.observed)
	close(gate)
	require.NoError(t, e.ready(2))
	require.Equal(t, 1, e.observed)
}

// Overlap depends on the moment a bucket fills, not on Finish.
func TestStartsBeforeFinish(t *testing.T) {
	for _, hold := range []bool{false, true} {
		e, f := newFake(t, [][]int{{2, 1}, {0}}, mode{hold: hold}, ended)
		require.NoError(t, e.ready(1))
		require.NoError(t, e.ready(2))
		if hold {
			require.Empty(t, f.starts)
		} else {
			require.Equal(t, []int{0}, f.starts)
		}
		require.NoError(t, e.ready(0))
		require.NoError(t, e.finish())
		require.Equal(t, []int{0, 1}, f.starts)
	}
}

// When the context of Finish ends the step stays open, and goes on.
func TestSettleAgainAfterContext(t *testing.T) {
	gate := make(chan struct{})
	e, _ := newFake(t, [][]int{{0}}, mode{record: true}, func(int) fakeWork { return fakeWork{gate: gate} })
	require.NoError(t, e.ready(0))
	require.NoError(t, e.finish())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := e.settle(ctx, 0)
	require.ErrorIs(t, err, context.Canceled)
	close(gate)
	require.NoError(t, e.finish())
	rebuild, err := e.settle(t.Context(), 0)
	require.NoError(t, err)
	require.True(t, rebuild)
}

func TestFailureOfAnOperationIsFinal(t *testing.T) {
	lost := errors.New("peer 2 is lost")
	e, _ := newFake(t, [][]int{{0}, {1}}, mode{}, func(int) fakeWork { return fakeWork{err: lost} })
	require.NoError(t, e.ready(0))
	require.NoError(t, e.ready(1))
	require.NoError(t, e.finish())
	_, err := e.settle(t.Context(), 0)
	require.ErrorIs(t, err, lost)
	require.ErrorIs(t, e.ready(0), lost)
	require.ErrorIs(t, e.setNoSync(true), lost)
}

// A hook that panics must not leave others waiting for its launch.
func TestPanicInStartReleases(t *testing.T) {
	e, _ := newFake(t, [][]int{{0}, {1}}, mode{}, func(b int) fakeWork {
		if b == 0 {
			panic("hook")
		}
		return fakeWork{}
	})
	require.PanicsWithValue(t, "hook", func() { _ = e.ready(0) })
	require.ErrorIs(t, e.ready(1), goccl.ErrAborted)
	require.ErrorContains(t, e.finish(), "the hook panicked on bucket 0")
}

func TestNoSyncAccumulates(t *testing.T) {
	e, f := newFake(t, [][]int{{0}, {1}}, mode{findUnused: true}, ended)
	require.NoError(t, e.setNoSync(true))
	for range 3 {
		require.NoError(t, e.ready(1))
	}
	require.Empty(t, f.starts)
	require.Zero(t, f.filled[1])
	require.NoError(t, e.setNoSync(false))
	require.NoError(t, e.ready(0))
	require.NoError(t, e.finish())
	require.Equal(t, 1, f.filled[1], "what was accumulated is reduced")
	require.Equal(t, []int{0, 1}, f.starts)
}
