package pgtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	processgroup "github.com/goccl/goccl/process_group"
)

func coalesce(t *testing.T, s *suite) {
	const n = 3
	all(t, s.groups(t, n), func(ctx context.Context, g *processgroup.Group) error {
		me, next, before := g.Rank(), (g.Rank()+1)%n, (g.Rank()+n-1)%n
		a, b, in, out := fill(10, mine(me)), fill(3000, mine(me)), fill(7, mine(me)), make([]float32, 7)
		var inner processgroup.Work
		w := g.Coalesce(func() error {
			g.Send(device.SliceOf(in), next)
			inner = g.AllReduce(device.SliceOf(a), goccl.Sum)
			if err := inner.Wait(ctx); !errors.Is(err, goccl.ErrInvalid) {
				return fmt.Errorf("waiting within says %v", err)
			}
			g.Recv(device.SliceOf(out), before)
			g.Broadcast(device.SliceOf(b), 2)
			return nil
		})
		if err := processgroup.WaitAll(ctx, w, inner); err != nil {
			return err
		}
		if err := g.Coalesce(func() error { return nil }).Wait(ctx); err != nil {
			return fmt.Errorf("empty: %w", err)
		}
		return errors.Join(equal("allreduce", a, total(n)), equal("broadcast", b, mine(2)), equal("received", out, mine(before)),
			g.Barrier(ctx))
	})
}

func coalesceFails(t *testing.T, s *suite) {
	why := errors.New("changed my mind")
	gs := s.groups(t, 2)
	errs := run(t, gs, func(ctx context.Context, g *processgroup.Group) error {
		b := device.SliceOf(make([]float32, 2))
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
				g.Send(device.SliceOf(out[i:i+1]), peer)
			}
			for i := range each {
				g.Recv(device.SliceOf(in[i:i+1]), peer)
			}
			return nil
		})
		if err := w.Wait(ctx); err != nil {
			return err
		}
		return equal("received", in, func(i int) int32 { return int32(peer*each + i) })
	})
}

func zeroBytes(t *testing.T, s *suite) {
	const n, rounds = 3, 6
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
				ops = append(ops, processgroup.P2P{Buf: device.SliceOf(fill(length(g.Rank(), r, round), mine(g.Rank()))), Peer: r},
					processgroup.P2P{Buf: device.SliceOf(in[r]), Peer: r, Recv: true})
			}
			if err := g.BatchSendRecv(ops).Wait(ctx); err != nil {
				return err
			}
			for r := range in {
				if err := equal(fmt.Sprint("from rank ", r), in[r], mine(r)); err != nil {
					return err
				}
			}
		}
		if err := g.BatchSendRecv(nil).Wait(ctx); err != nil {
			return err
		}
		empty := device.SliceOf([]float32(nil))
		switch g.Rank() {
		case 0:
			return errors.Join(g.Send(empty, 1).Wait(ctx), g.Recv(empty, 2).Wait(ctx))
		case 1:
			return errors.Join(g.Recv(empty, 0).Wait(ctx), g.Send(empty, 2).Wait(ctx))
		}
		return errors.Join(g.Recv(empty, 1).Wait(ctx), g.Send(empty, 0).Wait(ctx))
	})
}

func largeBothWays(t *testing.T, s *suite) {
	const count = 2 << 20
	all(t, s.groups(t, 2), func(ctx context.Context, g *processgroup.Group) error {
		in, out := make([]float32, count), fill(count, mine(g.Rank()))
		peer := 1 - g.Rank()
		w := g.BatchSendRecv([]processgroup.P2P{{Buf: device.SliceOf(out), Peer: peer}, {Buf: device.SliceOf(in), Peer: peer, Recv: true}})
		if err := w.Wait(ctx); err != nil {
			return err
		}
		return equal("received", in, mine(peer))
	})
}

func toOneself(t *testing.T, s *suite) {
	gs := s.groups(t, 2)
	all(t, gs, func(ctx context.Context, g *processgroup.Group) error {
		in := make([]float32, 9)
		self := []processgroup.P2P{{Buf: device.SliceOf(in), Peer: g.Rank(), Recv: true}, {Buf: device.SliceOf(fill(9, mine(g.Rank()))), Peer: g.Rank()}}
		if err := g.BatchSendRecv(self).Wait(ctx); err != nil {
			return err
		}
		return equal("from itself", in, mine(g.Rank()))
	})
	errs := run(t, gs, func(ctx context.Context, g *processgroup.Group) error {
		if g.Rank() == 1 {
			return g.Barrier(ctx)
		}
		return g.Send(device.SliceOf([]float32{1}), 0).Wait(ctx)
	})
	sameSentence(t, errs, nil, "rank 0", "send")
}

func barrierAndAgree(t *testing.T, s *suite) {
	const n = 3
	all(t, s.groups(t, n), func(ctx context.Context, g *processgroup.Group) error {
		for _, who := range []int{-1, 0, 2} {
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
	gs := s.groups(t, 4)
	errs := run(t, gs[:2], func(ctx context.Context, g *processgroup.Group) error {
		ctx, cancel := context.WithTimeout(ctx, limit/60)
		defer cancel()
		return g.MonitoredBarrier(ctx)
	})
	for r, err := range errs {
		var e *goccl.Error
		if !errors.As(err, &e) || !errors.Is(err, goccl.ErrTimeout) {
			t.Fatalf("rank %d: %v is no timeout", r, err)
		}
		if !slices.Contains(e.Missing, 2) || !slices.Contains(e.Missing, 3) || slices.Contains(e.Missing, r) {
			t.Errorf("rank %d: missing %v, want 2 and 3", r, e.Missing)
		}
	}
	if err := gs[3].Err(); err != nil {
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
