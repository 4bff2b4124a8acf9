package dist_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/dist"
	processgroup "github.com/goccl/goccl/process_group"
)

// value is element i of a buffer of rank r: different for all of them.
func value(r, i int) int64 { return int64(1_000_003*(r+1) + i) }

func vector(r, n int) []int64 {
	s := make([]int64, n)
	for i := range s {
		s[i] = value(r, i)
	}
	return s
}

// want says where got differs from element i = f(i).
func want(what string, got []int64, f func(i int) int64) error {
	for i, x := range got {
		if x != f(i) {
			return fmt.Errorf("%s: element %d of %d is %d, want %d", what, i, len(got), x, f(i))
		}
	}
	return nil
}

// exercise runs every collective of g once, on n elements.
func exercise(ctx context.Context, g *dist.Group, n int) error {
	for _, f := range []func(context.Context, *dist.Group, int) error{reductions, spreads, exchanges, transfers, meetings} {
		if err := f(ctx, g, n); err != nil {
			return err
		}
	}
	return nil
}

func total(g *dist.Group, i int) (t int64) {
	for r := range g.Size() {
		t += value(r, i)
	}
	return t
}

func reductions(ctx context.Context, g *dist.Group, n int) error {
	b := vector(g.Rank(), n)
	if err := g.AllReduce(device.SliceOf(b), goccl.Sum).Wait(ctx); err != nil {
		return err
	}
	if err := want("allreduce", b, func(i int) int64 { return total(g, i) }); err != nil {
		return err
	}
	root := g.Size() - 1
	b = vector(g.Rank(), n)
	if err := g.Reduce(device.SliceOf(b), goccl.Max, root).Wait(ctx); err != nil {
		return err
	}
	if g.Rank() == root {
		if err := want("reduce", b, func(i int) int64 { return value(root, i) }); err != nil {
			return err
		}
	}
	part := make([]int64, n)
	if err := g.ReduceScatter(device.SliceOf(part), device.SliceOf(vector(g.Rank(), n*g.Size())), goccl.Sum).Wait(ctx); err != nil {
		return err
	}
	return want("reducescatter", part, func(i int) int64 { return total(g, g.Rank()*n+i) })
}

func spreads(ctx context.Context, g *dist.Group, n int) error {
	b := vector(g.Rank(), n)
	if err := g.Broadcast(device.SliceOf(b), 1%g.Size()).Wait(ctx); err != nil {
		return err
	}
	if err := want("broadcast", b, func(i int) int64 { return value(1%g.Size(), i) }); err != nil {
		return err
	}
	all := make([]int64, n*g.Size())
	if err := g.AllGatherInto(device.SliceOf(all), device.SliceOf(vector(g.Rank(), n))).Wait(ctx); err != nil {
		return err
	}
	if err := want("allgather", all, func(i int) int64 { return value(i/n, i%n) }); err != nil {
		return err
	}
	var parts []device.Buffer
	if g.Rank() == 0 {
		for p := range slices.Chunk(vector(7, n*g.Size()), n) {
			parts = append(parts, device.SliceOf(p))
		}
	}
	mine := make([]int64, n)
	if err := g.Scatter(device.SliceOf(mine), parts, 0).Wait(ctx); err != nil {
		return err
	}
	return want("scatter", mine, func(i int) int64 { return value(7, g.Rank()*n+i) })
}

func exchanges(ctx context.Context, g *dist.Group, n int) error {
	got := make([]int64, n*g.Size())
	if err := g.AllToAll(device.SliceOf(got), device.SliceOf(vector(g.Rank(), n*g.Size()))).Wait(ctx); err != nil {
		return err
	}
	if err := want("alltoall", got, func(i int) int64 { return value(i/n, g.Rank()*n+i%n) }); err != nil {
		return err
	}
	clear(got)
	parts := make([]device.Buffer, g.Size())
	for r := range parts {
		parts[r] = device.SliceOf(got[r*n : (r+1)*n])
	}
	root := g.Size() / 2
	if g.Rank() != root {
		parts = nil
	}
	if err := g.Gather(parts, device.SliceOf(vector(g.Rank(), n)), root).Wait(ctx); err != nil || g.Rank() != root {
		return err
	}
	return want("gather", got, func(i int) int64 { return value(i/n, i%n) })
}

func transfers(ctx context.Context, g *dist.Group, n int) error {
	if g.Size() == 1 {
		return nil
	}
	next, prev := (g.Rank()+1)%g.Size(), (g.Rank()+g.Size()-1)%g.Size()
	got := make([]int64, n)
	w := g.BatchSendRecv([]processgroup.P2P{
		{Buf: device.SliceOf(vector(g.Rank(), n)), Peer: next},
		{Buf: device.SliceOf(got), Peer: prev, Recv: true},
	})
	if err := w.Wait(ctx); err != nil {
		return err
	}
	if err := want("batch", got, func(i int) int64 { return value(prev, i) }); err != nil {
		return err
	}
	switch g.Rank() {
	case 0:
		return g.Send(device.SliceOf(vector(9, n)), 1).Wait(ctx)
	case 1:
		if err := g.Recv(device.SliceOf(got), 0).Wait(ctx); err != nil {
			return err
		}
		return want("recv", got, func(i int) int64 { return value(9, i) })
	}
	return nil
}

func meetings(ctx context.Context, g *dist.Group, n int) error {
	if err := g.Barrier(ctx); err != nil {
		return err
	}
	if err := g.MonitoredBarrier(ctx); err != nil {
		return err
	}
	any, err := g.Agree(ctx, g.Rank() == 1)
	if err != nil {
		return err
	}
	if any != (g.Size() > 1) {
		return fmt.Errorf("agree: got %v", any)
	}
	a, b := vector(g.Rank(), n), vector(g.Rank(), n)
	err = g.Coalesce(func() error {
		g.AllReduce(device.SliceOf(a), goccl.Min)
		g.Broadcast(device.SliceOf(b), 0)
		return nil
	}).Wait(ctx)
	if err != nil {
		return err
	}
	if err := want("coalesced allreduce", a, func(i int) int64 { return value(0, i) }); err != nil {
		return err
	}
	return want("coalesced broadcast", b, func(i int) int64 { return value(0, i) })
}
