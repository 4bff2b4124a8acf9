package plan

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// C64: sizes beyond 2^31 and 2^32 bytes are cut without losing or doubling any.
func TestC64LargeBuffersAreCutWhole(t *testing.T) {
	for _, unit := range []int64{1<<31 - 1, 1<<31 + 8, 1<<32 + 1, 1<<33 + 4096*3 + 5, 1<<40 + 7} {
		for _, g := range []Geom{
			{Base: Whole, Grain: 512, ChunkBytes: 1 << 30, Slices: 1, D: 4},
			{Base: Whole, Grain: 64, ChunkBytes: 1 << 28, Slices: 2, D: 3},
			{Base: PerRank, Grain: 512, ChunkBytes: 1 << 29, Slices: 1, D: 1},
		} {
			for _, channels := range []int{1, 3} {
				next := int64(0)
				for ch := range channels {
					lo, n := g.Span(unit, ch, channels)
					require.Equal(t, next, lo)
					at := int64(0)
					for k := range g.Iters(n) {
						for v := range g.D {
							off, length := g.Chunk(n, k, v)
							if length > 0 {
								require.Equal(t, at, off, "unit %d channel %d iteration %d chunk %d", unit, ch, k, v)
							}
							at += length
						}
					}
					require.Equal(t, n, at)
					next = lo + n
				}
				require.Equal(t, unit, next)
			}
		}
	}
}
