package pgtest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/goccl/goccl"
	processgroup "github.com/goccl/goccl/process_group"
)

// fill returns n elements f(i).
func fill[T goccl.Number](n int, f func(i int) T) []T {
	s := make([]T, n)
	for i := range s {
		s[i] = f(i)
	}
	return s
}

// equal compares got with f(i), naming the first difference.
func equal[T goccl.Number](what string, got []T, f func(i int) T) error {
	for i, v := range got {
		if v != f(i) {
			return fmt.Errorf("%s: element %d is %v, want %v", what, i, v, f(i))
		}
	}
	return nil
}

// mine are the values of a rank in the cases: small whole numbers.
func mine(rank int) func(i int) float32 {
	return func(i int) float32 { return float32(100*(rank+1) + i%50) }
}

// total is the sum of mine over n ranks.
func total(n int) func(i int) float32 {
	return func(i int) float32 { return float32(100*n*(n+1)/2 + n*(i%50)) }
}

func oneRank(t *testing.T, s *suite) {
	gs := s.groups(t, 1)
	for f := range forms {
		for _, inPlace := range []bool{false, true} {
			c := &shape{form: &forms[f], dtype: goccl.F32, redop: goccl.Avg, count: 7, ranks: 1, inPlace: inPlace, salt: 5, memory: s.memory}
			all(t, gs, func(ctx context.Context, g *processgroup.Group) error { return c.form.fn(ctx, g, c) })
		}
	}
	all(t, gs, func(ctx context.Context, g *processgroup.Group) error {
		return errors.Join(g.Barrier(ctx), g.MonitoredBarrier(ctx))
	})
}

func waitOutOfOrder(t *testing.T, s *suite) {
	const ops = 12
	n := s.upTo(3)
	all(t, s.groups(t, n), func(ctx context.Context, g *processgroup.Group) error {
		var ws []processgroup.Work
		var bufs [][]float32
		for k := range ops {
			b := fill(100*k, mine(g.Rank()))
			bufs, ws = append(bufs, b), append(ws, g.AllReduce(put(s, g, b), goccl.Sum))
		}
		order := []int{5, 0, 11, 3, 3, 10, 1, 2, 4, 6, 7, 8, 9}
		for _, k := range order {
			if err := ws[k].Wait(ctx); err != nil {
				return err
			}
			if err := equal(fmt.Sprint("operation ", k), got(s, g, bufs[k]), total(n)); err != nil {
				return err
			}
		}
		return nil
	})
}

func groupsInDifferentOrders(t *testing.T, s *suite) {
	const n = 2
	a, b := s.groups(t, n), s.groups(t, n)
	all(t, a, func(ctx context.Context, g *processgroup.Group) error {
		first, second := g, b[g.Rank()]
		if g.Rank() == 1 {
			first, second = second, first
		}
		x, y := fill(5000, mine(g.Rank())), fill(5000, mine(g.Rank()))
		w := first.AllReduce(put(s, first, x), goccl.Sum)
		v := second.AllReduce(put(s, second, y), goccl.Sum)
		if err := processgroup.WaitAll(ctx, w, v); err != nil {
			return err
		}
		return errors.Join(equal("first group", got(s, first, x), total(n)), equal("second group", got(s, second, y), total(n)))
	})
}

func nobodyWaits(t *testing.T, s *suite) {
	const n = 2
	gs := s.groups(t, n)
	for _, count := range []int{2, 100_000} {
		dropped := fill(count, mine(0))
		gs[0].AllReduce(put(s, gs[0], dropped), goccl.Sum)
		all(t, gs[1:], func(ctx context.Context, g *processgroup.Group) error {
			b := fill(count, mine(1))
			if err := g.AllReduce(put(s, g, b), goccl.Sum).Wait(ctx); err != nil {
				return err
			}
			return equal("rank 1", got(s, g, b), total(n))
		})
	}
}

func sharedByGoroutines(t *testing.T, s *suite) {
	const n, workers, rounds, count = 2, 8, 20, 65
	gs := s.groups(t, n)
	sums := make([]float64, n)
	all(t, gs, func(ctx context.Context, g *processgroup.Group) error {
		// Which calls meet is chance. Each fills its buffer with one value, so data
		// of two calls must not stand in one result, and nothing may be lost.
		var mu sync.Mutex
		var wg sync.WaitGroup
		errs := make([]error, workers)
		for k := range workers {
			wg.Go(func() {
				for round := range rounds {
					v := float32(1 + g.Rank()*workers*rounds + k*rounds + round)
					b := fill(count, func(int) float32 { return v })
					if errs[k] = g.AllReduce(put(s, g, b), goccl.Sum).Wait(ctx); errs[k] != nil {
						return
					}
					got(s, g, b)
					if errs[k] = equal("mixed data", b, func(int) float32 { return b[0] }); errs[k] != nil {
						return
					}
					mu.Lock()
					sums[g.Rank()] += float64(b[0])
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		return errors.Join(errs...)
	})
	calls := n * workers * rounds
	if want := float64(calls * (calls + 1) / 2); sums[0] != want || sums[1] != want {
		t.Errorf("results add up to %v, want %v on both ranks", sums, want)
	}
}

func droppedBuffer(t *testing.T, s *suite) {
	if s.memory != nil {
		t.Skip("the collector does not own the memory of devices")
	}
	const n, count = 2, 50_000
	gs := s.groups(t, n)
	freed := make(chan struct{})
	w := func() processgroup.Work {
		b := fill(count, mine(0))
		runtime.AddCleanup(&b[0], func(ch chan struct{}) { close(ch) }, freed)
		return gs[0].Broadcast(put(s, gs[0], b), 0)
	}()
	for range 3 {
		runtime.GC()
		garbage := fill(count, func(int) float32 { return -1 })
		runtime.KeepAlive(garbage)
	}
	if done, _ := w.Test(); !done {
		select {
		case <-freed:
			t.Fatal("the buffer was collected while the operation was under way")
		default:
		}
	}
	all(t, gs[1:], func(ctx context.Context, g *processgroup.Group) error {
		b := make([]float32, count)
		if err := g.Broadcast(put(s, g, b), 0).Wait(ctx); err != nil {
			return err
		}
		return equal("received", b, mine(0))
	})
	all(t, gs[:1], func(ctx context.Context, _ *processgroup.Group) error { return w.Wait(ctx) })
	guard(t, "buffer is let go", func() {
		for {
			select {
			case <-freed:
				return
			case <-time.After(time.Millisecond):
				runtime.GC()
			}
		}
	})
}

func staleHandle(t *testing.T, s *suite) {
	const n = 2
	gs := s.groups(t, n)
	old := make([]processgroup.Work, n)
	all(t, gs, func(ctx context.Context, g *processgroup.Group) error {
		old[g.Rank()] = g.AllReduce(put(s, g, fill(3, mine(0))), goccl.Sum, processgroup.Label("old"))
		if err := old[g.Rank()].Wait(ctx); err != nil {
			return err
		}
		for range 50 {
			if err := allReduce(ctx, s, g, []float32{1}, goccl.Sum); err != nil {
				return err
			}
		}
		return nil
	})
	// An operation is under way in what may be the same Op. The old handle says
	// how its own ended.
	later := gs[0].AllReduce(put(s, gs[0], []float32{1}), goccl.Sum)
	all(t, gs[:1], func(ctx context.Context, _ *processgroup.Group) error {
		if done, err := old[0].Test(); !done || err != nil {
			return fmt.Errorf("old handle: done %v, %v", done, err)
		}
		if info := old[0].Info(); info.Label != "old" {
			return fmt.Errorf("old handle speaks of %q", info.Label)
		}
		select {
		case <-old[0].Done():
		default:
			return errors.New("the channel of an old handle is open")
		}
		return old[0].Wait(ctx)
	})
	all(t, gs[1:], func(ctx context.Context, g *processgroup.Group) error {
		return allReduce(ctx, s, g, []float32{1}, goccl.Sum)
	})
	all(t, gs[:1], func(ctx context.Context, _ *processgroup.Group) error { return later.Wait(ctx) })
	if err := (processgroup.Work{}).Wait(context.Background()); !errors.Is(err, goccl.ErrInvalid) {
		t.Errorf("a zero Work says %v", err)
	}
}

func doneChannel(t *testing.T, s *suite) {
	gs := s.groups(t, 2)
	w := gs[0].Broadcast(put(s, gs[0], []float32{7}), 0)
	done := gs[0].Broadcast(put(s, gs[0], []float32{8}), 1).Done()
	all(t, gs[1:], func(ctx context.Context, g *processgroup.Group) error {
		b := make([]float32, 1)
		return errors.Join(bcast(ctx, s, g, b, 0), bcast(ctx, s, g, b, 1))
	})
	guard(t, "Done", func() { <-done; <-w.Done(); <-w.Done() })
}

func contextBoundsTheWait(t *testing.T, s *suite) {
	gs := s.groups(t, 2)
	b := []float32{1}
	w := gs[0].AllReduce(put(s, gs[0], b), goccl.Sum)
	why := errors.New("had enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(why)
	if err := w.Wait(ctx); !errors.Is(err, why) {
		t.Fatalf("Wait says %v, want the cause of its context", err)
	}
	if err := gs[0].Err(); err != nil {
		t.Fatalf("the group failed: %v", err)
	}
	all(t, gs[1:], func(ctx context.Context, g *processgroup.Group) error {
		return allReduce(ctx, s, g, []float32{2}, goccl.Sum)
	})
	all(t, gs[:1], func(ctx context.Context, _ *processgroup.Group) error {
		return errors.Join(w.Wait(ctx), equal("after a wait was given up", got(s, gs[0], b), func(int) float32 { return 3 }))
	})
}

func recorder(t *testing.T, s *suite) {
	all(t, s.groups(t, 2), func(ctx context.Context, g *processgroup.Group) error {
		b := make([]float32, 4)
		w := g.AllReduce(put(s, g, b), goccl.Sum, processgroup.Label("first"))
		v := g.Broadcast(put(s, g, b[:3]), 1)
		if err := processgroup.WaitAll(ctx, w, v); err != nil {
			return err
		}
		ops := slices.Collect(g.Operations())
		if len(ops) != 2 || ops[0].Op != "allreduce" || ops[0].Seq != 1 || ops[0].Label != "first" || ops[0].Bytes != 16 ||
			ops[1].Op != "broadcast" || ops[1].Seq != 2 || ops[1].Root != 1 || ops[1].Count != 3 {
			return fmt.Errorf("the recorder holds %+v", ops)
		}
		for _, o := range ops {
			if o.State != "done" || o.Queued.IsZero() || o.Ended.Before(o.Queued) || o.Algo == "" || o.Proto == "" || o.Started.IsZero() {
				return fmt.Errorf("the recorder holds %+v", o)
			}
		}
		return nil
	})
}
