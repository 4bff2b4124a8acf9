package plan

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/golden"
)

// geometries are the rows of the golden table: every executor cuts like this.
var geometries = []struct {
	g        Geom
	unit     int64
	channels int
}{
	{Geom{Base: Whole, Grain: 64, ChunkBytes: 128, Slices: 1, D: 1}, 0, 1},
	{Geom{Base: Whole, Grain: 64, ChunkBytes: 128, Slices: 1, D: 1}, 4, 2},
	{Geom{Base: Whole, Grain: 64, ChunkBytes: 128, Slices: 1, D: 1}, 128, 1},
	{Geom{Base: Whole, Grain: 64, ChunkBytes: 128, Slices: 2, D: 1}, 260, 1},
	{Geom{Base: Whole, Grain: 64, ChunkBytes: 128, Slices: 1, D: 4}, 4, 1},
	{Geom{Base: Whole, Grain: 64, ChunkBytes: 128, Slices: 1, D: 4}, 260, 1},
	{Geom{Base: Whole, Grain: 64, ChunkBytes: 128, Slices: 1, D: 4}, 512, 1},
	{Geom{Base: Whole, Grain: 64, ChunkBytes: 128, Slices: 1, D: 4}, 516, 1},
	{Geom{Base: Whole, Grain: 64, ChunkBytes: 128, Slices: 1, D: 3}, 1000, 2},
	{Geom{Base: Whole, Grain: 512, ChunkBytes: 4096, Slices: 3, D: 2}, 20000, 4},
	{Geom{Base: PerRank, Grain: 64, ChunkBytes: 128, Slices: 1, D: 1}, 300, 1},
	{Geom{Base: PerRank, Grain: 64, ChunkBytes: 256, Slices: 2, D: 1}, 1001, 3},
}

func TestGeometryTable(t *testing.T) {
	var b strings.Builder
	for _, x := range geometries {
		g := x.g
		fmt.Fprintf(&b, "%v, grain %d, chunk %d, slices %d, chunks an iteration %d: %d bytes in %d channels\n", g.Base, g.Grain, g.ChunkBytes, g.Slices, g.D, x.unit, x.channels)
		for ch := range x.channels {
			lo, n := g.Span(x.unit, ch, x.channels)
			fmt.Fprintf(&b, "  channel %d: %d+%d\n", ch, lo, n)
			for k := range g.Iters(n) {
				fmt.Fprintf(&b, "    iteration %d:", k)
				for v := range g.D {
					off, l := g.Chunk(n, k, v)
					fmt.Fprintf(&b, " %d+%d", off, l)
					if g.Slices > 1 {
						b.WriteString(" (")
						for s := range g.Slices {
							so, sl := g.Slice(l, s)
							fmt.Fprintf(&b, " %d+%d", so, sl)
						}
						b.WriteString(" )")
					}
				}
				b.WriteString("\n")
			}
		}
	}
	golden.File(t, "testdata/geom.txt", b.String())
}

// TestGeometryTiles checks on random geometries that channels, chunks and slices
// follow each other without gap or overlap, on whole grains, and within bounds.
func TestGeometryTiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		g := Geom{Grain: int64(1 + rng.IntN(3)*4), Slices: 1 + rng.IntN(4), D: 1 + rng.IntN(6)}
		g.ChunkBytes = g.Grain * int64(1+rng.IntN(5))
		unit, channels := rng.Int64N(2000), 1+rng.IntN(5)
		var at int64
		for ch := range channels {
			lo, n := g.Span(unit, ch, channels)
			if lo != at || lo%g.Grain != 0 && lo != unit {
				t.Fatalf("%+v, %d bytes: channel %d of %d begins at %d; the one before ends at %d", g, unit, ch, channels, lo, at)
			}
			at += n
			if bad := untiled(g, n); bad != "" {
				t.Fatalf("%+v, channel of %d bytes: %s", g, n, bad)
			}
		}
		require.Equal(t, unit, at)
	}
}

// untiled says where the chunks of a channel, or the slices of a chunk, do not
// follow each other.
func untiled(g Geom, n int64) string {
	var at int64
	for k := range g.Iters(n) {
		for v := range g.D {
			off, l := g.Chunk(n, k, v)
			if off != at || l < 0 || l > g.ChunkBytes {
				return fmt.Sprintf("chunk %d of iteration %d is %d+%d after %d", v, k, off, l, at)
			}
			at += l
			var in int64
			for s := range g.Slices {
				so, sl := g.Slice(l, s)
				if so != in || sl < 0 || sl > g.SliceBytes() {
					return fmt.Sprintf("slice %d of a chunk of %d is %d+%d after %d", s, l, so, sl, in)
				}
				in += sl
			}
			if in != l {
				return fmt.Sprintf("slices of a chunk of %d end at %d", l, in)
			}
		}
	}
	if at != n {
		return fmt.Sprintf("chunks end at %d", at)
	}
	return ""
}
