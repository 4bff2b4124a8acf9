package processgroup

import (
	"context"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
)

// AllReduce combines s over all ranks in place and waits for it.
func AllReduce[T goccl.Number](ctx context.Context, g *Group, s []T, op goccl.ReduceOp) error {
	return g.AllReduce(device.SliceOf(s), op).Wait(ctx)
}

// Broadcast copies s of root to s of all other ranks and waits for it.
func Broadcast[T goccl.Number](ctx context.Context, g *Group, s []T, root int) error {
	return g.Broadcast(device.SliceOf(s), root).Wait(ctx)
}

// AllGather copies src of each rank to its part of dst on all ranks and waits
// for it. dst is Size() times as long as src.
func AllGather[T goccl.Number](ctx context.Context, g *Group, dst, src []T) error {
	return g.AllGatherInto(device.SliceOf(dst), device.SliceOf(src)).Wait(ctx)
}
