package dist_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/dist"
)

func TestInitLocalAllReduce(t *testing.T) {
	sums := make([][]float32, 4)
	err := dist.Run(t.Context(), dist.Config{Local: 4}, func(ctx context.Context, g *dist.Group) error {
		s := []float32{float32(g.Rank()), float32(10 * g.Rank()), 1}
		sums[g.Rank()] = s
		return g.AllReduce(device.SliceOf(s), goccl.Sum).Wait(ctx)
	})
	require.NoError(t, err)
	for _, s := range sums {
		require.Equal(t, []float32{6, 60, 4}, s)
	}
}

func TestEveryCollectiveOnGoroutines(t *testing.T) {
	for _, n := range []int{1, 2, 3} {
		err := dist.Run(t.Context(), dist.Config{Local: n}, func(ctx context.Context, g *dist.Group) error {
			for _, count := range []int{1, 1000, 30_000} {
				if err := exercise(ctx, g, count); err != nil {
					return err
				}
			}
			return nil
		})
		require.NoError(t, err, "%d ranks", n)
	}
}
