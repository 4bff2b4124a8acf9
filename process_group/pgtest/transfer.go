package pgtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/goccl/goccl"
	processgroup "github.com/goccl/goccl/process_group"
)

func coalesce(t *testing.T, s *suite) {
	n := s.upTo(3)
	all(t, s.groups(t, n), func(ctx context.Context, g *processgroup.Group) error {
		me, next, before := g.Rank(), (g.Rank()+1)%n, (g.Rank()+n-1)%n
		a, b, in, out := fill(10, mine(me)), fill(3000, mine(me)), fill(7, mine(me)), make([]float32, 7)
		var inner processgroup.Work
		w := g.Coalesce(func() error {
			g.Send(put(s, g, in), next)
			inner = g.AllReduce(put(s, g, a), goccl.Sum)
			if err := inner.Wait(ctx); !errors.Is(err, goccl.ErrInvalid) {
				return fmt.Errorf("waiting within says %v", err)
			}
			g.Recv(put(s, g, out), before)
			g.Broadcast(put(s, g, b), n-1)
			return nil
		})
		if err := processgroup.WaitAll(ctx, w, inner); err != nil {
			return err
		}
		if err := g.Coalesce(func() error { return nil }).Wait(ctx); err != nil {
			return fmt.Errorf("empty: %w", err)
		}
		return errors.Join(equal("allreduce", got(s, g, a), total(n)), equal("broadcast", got(s, g, b), mine(n-1)), equal("received", got(s, g, out), mine(before)),
			g.Barrier(ctx))
	})
}

func coalesceFails(t *testing.T, s *suite) {
	why := errors.New("changed my mind")
	gs := s.groups(t, 2)
	errs := run(t, gs, func(ctx context.Context, g *processgroup.Group) error {
		b := put(s, g, make([]float32, 2))
		return g.Coalesce(func() error {
			g.AllReduce(b, goccl.Sum)
			if g.Rank() == 1 {
				return why
			}
			return nil
		}).Wait(ctx)
	})
	sameSentence(t, errs, nil, "rank 1", why.Error())
	if !errors.Is(errs[1], why) {
		t.Errorf("rank 1 does not find its own error in %v", errs[1])
	}
}

func manyTransfers(t *testing.T, s *suite) {
	const each = 2500 // sends and as many receives
	all(t, s.groups(t, 2), func(ctx context.Context, g *processgroup.Group) error {
		me, peer := g.Rank(), 1-g.Rank()
		out, in := make([]int32, each), make([]int32, each)
		w := g.Coalesce(func() error {
			for i := range each {
				out[i] = int32(me*each + i)
				g.Send(put(s, g, out[i:i+1]), peer)
			}
			for i := range each {
				g.Recv(put(s, g, in[i:i+1]), peer)
			}
			return nil
		})
		if err := w.Wait(ctx); err != nil {
			return err
		}
		return equal("received", got(s, g, in), func(i int) int32 { return int32(peer*each + i) })
	})
}

func zeroBytes(t *testing.T, s *suite) {
	const rounds = 6
	n := s.upTo(3)
	all(t, s.groups(t, n), func(ctx context.Context, g *processgroup.Group) error {
		// Lengths of zero are mixed with others, alone and in a batch.
		length := func(from, to, round int) int { return (from + to + round) % 3 * 40 }
		for round := range rounds {
			in := make([][]float32, n)
			var ops []processgroup.P2P
			for r := range n {
				if r == g.Rank() {
					continue
				}
				in[r] = make([]float32, length(r, g.Rank(), round))
				ops = append(ops, processgroup.P2P{Buf: put(s, g, fill(length(g.Rank(), r, round), mine(g.Rank()))), Peer: r},
					processgroup.P2P{Buf: put(s, g, in[r]), Peer: r, Recv: true})
			}
			if err := g.BatchSendRecv(ops).Wait(ctx); err != nil {
				return err
			}
			for r := range in {
				if err := equal(fmt.Sprint("from rank ", r), got(s, g, in[r]), mine(r)); err != nil {
					return err
				}
			}
		}
		if err := g.BatchSendRecv(nil).Wait(ctx); err != nil {
			return err
		}
		empty := put(s, g, []float32(nil))
		next, before := (g.Rank()+1)%n, (g.Rank()+n-1)%n
		if g.Rank() == 0 {
			return errors.Join(g.Send(empty, next).Wait(ctx), g.Recv(empty, before).Wait(ctx))
		}
		return errors.Join(g.Recv(empty, before).Wait(ctx), g.Send(empty, next).Wait(ctx))
	})
}

func largeBothWays(t *testing.T, s *suite) {
	const count = 2 << 20
	all(t, s.groups(t, 2), func(ctx context.Context, g *processgroup.Group) error {
		in, out := make([]float32, count), fill(count, mine(g.Rank()))
		peer := 1 - g.Rank()
		w := g.BatchSendRecv([]processgroup.P2P{{Buf: put(s, g, out), Peer: peer}, {Buf: put(s, g, in), Peer: peer, Recv: true}})
		if err := w.Wait(ctx); err != nil {
			return err
		}
		return equal("received", got(s, g, in), mine(peer))
	})
}

func toOneself(t *testing.T, s *suite) {
	gs := s.groups(t, 2)
	all(t, gs, func(ctx context.Context, g *processgroup.Group) error {
		in := make([]float32, 9)
		self := []processgroup.P2P{{Buf: put(s, g, in), Peer: g.Rank(), Recv: true}, {Buf: put(s, g, fill(9, mine(g.Rank()))), Peer: g.Rank()}}
		if err := g.BatchSendRecv(self).Wait(ctx); err != nil {
			return err
		}
		return equal("from itself", got(s, g, in), mine(g.Rank()))
	})
	errs := run(t, gs, func(ctx context.Context, g *processgroup.Group) error {
		if g.Rank() == 1 {
			return g.Barrier(ctx)
		}
		return g.Send(put(s, g, []float32{1}), 0).Wait(ctx)
	})
	sameSentence(t, errs, nil, "rank 0", "send")
}

func barrierAndAgree(t *testing.T, s *suite) {
	n := s.upTo(3)
	all(t, s.groups(t, n), func(ctx context.Context, g *processgroup.Group) error {
		for _, who := range []int{-1, 0, n - 1} {
			if err := g.Barrier(ctx); err != nil {
				return err
			}
			switch got, err := g.Agree(ctx, g.Rank() == who); {
			case err != nil:
				return err
			case got != (who >= 0):
				return fmt.Errorf("agreed on %v when rank %d alone says true", got, who)
			}
		}
		return g.MonitoredBarrier(ctx)
	})
}

// monitoredBarrier is called by ranks 0 and 1 of 4. Each must name both that never
// come; on a machine under load it may name the other caller too.
func monitoredBarrier(t *testing.T, s *suite) {
	n := s.upTo(4)
	come := (n + 1) / 2
	gs := s.groups(t, n)
	errs := run(t, gs[:come], func(ctx context.Context, g *processgroup.Group) error {
		ctx, cancel := context.WithTimeout(ctx, limit/60)
		defer cancel()
		return g.MonitoredBarrier(ctx)
	})
	for r, err := range errs {
		var e *goccl.Error
		if !errors.As(err, &e) || !errors.Is(err, goccl.ErrTimeout) {
			t.Fatalf("rank %d: %v is no timeout", r, err)
		}
		for q := come; q < n; q++ {
			if !slices.Contains(e.Missing, q) || slices.Contains(e.Missing, r) {
				t.Errorf("rank %d: missing %v, want %d to %d", r, e.Missing, come, n-1)
			}
		}
	}
	if err := gs[n-1].Err(); err != nil {
		t.Errorf("the group failed: %v", err)
	}
}

func newBuffer(t *testing.T, s *suite) {
	const n, count = 2, 3000
	all(t, s.groups(t, n), func(ctx context.Context, g *processgroup.Group) error {
		for _, d := range []goccl.DType{goccl.F32, goccl.BF16} {
			a, err := g.NewBuffer(count, d)
			if err != nil {
				return err
			}
			b, err := g.NewBuffer(count, d)
			if err != nil {
				return err
			}
			if a.Count != count || a.DType != d || a.Overlaps(b) || a.Check() != nil {
				return fmt.Errorf("asked for %d %v, got %+v and %+v", count, d, a, b)
			}
			if err := processgroup.WaitAll(ctx, g.AllReduce(a, goccl.Sum), g.AllReduceInto(b, a, goccl.Sum)); err != nil {
				return err
			}
			if err := g.FreeBuffer(a); err != nil {
				return err
			}
		}
		return nil
	})
}
