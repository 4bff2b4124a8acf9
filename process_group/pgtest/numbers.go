package pgtest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/goccl/goccl"
	processgroup "github.com/goccl/goccl/process_group"
)

func int8Wraps(t *testing.T, s *suite) {
	all(t, s.groups(t, 2), func(ctx context.Context, g *processgroup.Group) error {
		b := fill(70, func(int) int8 { return 100 })
		if err := allReduce(ctx, s, g, b, goccl.Sum); err != nil {
			return err
		}
		return equal("100+100", b, func(int) int8 { return -56 })
	})
}

// bf16Bound holds the error of a bf16 sum against the documented bound: rounded
// once for each rank that adds.
func bf16Bound(t *testing.T, s *suite) {
	for _, n := range s.sizes(4, 8) {
		if testing.Short() && n > 4 {
			continue
		}
		all(t, s.groups(t, n), func(ctx context.Context, g *processgroup.Group) error {
			const count = 513
			value := func(r, i int) float32 { // one large among small ones: the large one moves
				if r == i%n {
					return 256
				}
				return 1 + float32(i%7)/8
			}
			b := fill(count, func(i int) goccl.BFloat16 { return goccl.ToBFloat16(value(g.Rank(), i)) })
			if err := allReduce(ctx, s, g, b, goccl.Sum); err != nil {
				return err
			}
			for i := range b {
				sum := 0.0
				for r := range n {
					sum += float64(goccl.ToBFloat16(value(r, i)).Float32())
				}
				got, bound := float64(b[i].Float32()), float64(n-1)*unit(goccl.BF16)*2*sum
				if math.Abs(got-sum) > bound {
					return fmt.Errorf("element %d is %v, the sum is %v, the bound %v", i, got, sum, bound)
				}
			}
			return nil
		})
	}
}

// sameBits repeats reductions whose rounding depends on the order, and holds that
// neither the run nor the rank makes a difference.
func sameBits(t *testing.T, s *suite) {
	n := s.upTo(3)
	sizes := []int{1, 16, 1000, 2048, 2049, 20_000}
	if testing.Short() {
		sizes = sizes[:4]
	}
	results := make([][][]float32, n)
	all(t, s.groups(t, n), func(ctx context.Context, g *processgroup.Group) error {
		for _, size := range sizes {
			in := fill(size, func(i int) float32 {
				return float32(math.Sin(float64(i*7+g.Rank()*31))) * float32(math.Pow(10, float64(i%9)))
			})
			runs := 100
			if size > 10_000 {
				runs = 20
			}
			var first []float32
			for k := range runs {
				b := slices.Clone(in)
				if err := g.AllReduce(put(s, g, b), goccl.Sum).Wait(ctx); err != nil {
					return err
				}
				got(s, g, b)
				if k == 0 {
					first = b
				}
				if !slices.Equal(b, first) {
					return equal(fmt.Sprintf("size %d, run %d", size, k), b, func(i int) float32 { return first[i] })
				}
			}
			results[g.Rank()] = append(results[g.Rank()], first)
		}
		return nil
	})
	for r := 1; r < n; r++ {
		for k := range sizes {
			if err := equal(fmt.Sprintf("size %d: rank %d against rank 0", sizes[k], r), results[r][k], func(i int) float32 { return results[0][k][i] }); err != nil {
				t.Error(err)
			}
		}
	}
}
