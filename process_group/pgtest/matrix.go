package pgtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	processgroup "github.com/goccl/goccl/process_group"
)

// The factors of the matrix.
var (
	ranks   = []int{1, 2, 3, 4, 5, 8}
	counts  = []int{0, 1, 2, 3, 5, 8, 13, 64, 127, 1000, 4097, 33333}
	dtypes  = append(goccl.DTypes(), goccl.F8E4M3, goccl.F8E5M2)
	redops  = append(goccl.ReduceOps(), goccl.PreMulSum(1))
	roots   = []string{"first", "middle", "last"}
	offsets = []int{0, 1, 3}
	forms   = []form{
		{"allreduce", allReduceForm}, {"reduce", reduceForm}, {"broadcast", broadcastForm},
		{"allgather", allGatherForm}, {"allgatherinto", allGatherIntoForm}, {"reducescatter", reduceScatterForm},
		{"alltoall", allToAllForm}, {"alltoallv", allToAllVForm}, {"gather", gatherForm}, {"scatter", scatterForm},
		{"sendrecv", sendRecvForm}, {"batch", batchForm},
	}
)

// maxCases bounds the matrix: more would say nothing new.
const maxCases = 3000

// form is one way to call a collective: fn calls it on one rank, waits, and
// compares.
type form struct {
	name string
	fn   func(ctx context.Context, g *processgroup.Group, c *shape) error
}

// shape is one row of the matrix.
type shape struct {
	form    *form
	dtype   goccl.DType
	redop   goccl.ReduceOp
	count   int
	ranks   int
	root    int
	offset  int
	inPlace bool
	salt    uint64
	memory  *memory
}

// buf returns v where the rank of g has its buffers.
func (c *shape) buf(g *processgroup.Group, v vec) device.Buffer { return v.buffer(c.memory, g.Rank()) }

func (c *shape) String() string {
	return fmt.Sprintf("%s %v %v count %d ranks %d root %d offset %d in place %v salt %#x",
		c.form.name, c.dtype, c.redop, c.count, c.ranks, c.root, c.offset, c.inPlace, c.salt)
}

// rows returns the shapes to run, sorted by rank count.
func (s *suite) rows(short bool) []shape {
	rng := rand.New(rand.NewPCG(s.Seed, 1))
	worlds := ranks
	if short {
		worlds = []int{1, 2, 4}
	}
	worlds = slices.DeleteFunc(slices.Clone(worlds), func(n int) bool { return n > s.most() })
	levels := []int{len(forms), len(dtypes), len(redops), len(counts), len(worlds), len(roots), len(offsets), 2}
	rows := cover(levels, rng)
	for len(rows) < min(s.Cases, maxCases) {
		row := make([]int, len(levels))
		for f := range row {
			row[f] = rng.IntN(levels[f])
		}
		rows = append(rows, row)
	}
	if s.Cases > 0 {
		rows = rows[:min(len(rows), s.Cases)]
	}
	shapes := make([]shape, len(rows))
	for i, row := range rows {
		c := shape{form: &forms[row[0]], dtype: dtypes[row[1]], redop: redops[row[2]], count: counts[row[3]],
			ranks: worlds[row[4]], offset: offsets[row[6]], inPlace: row[7] == 1, salt: rng.Uint64(), memory: s.memory}
		c.root = []int{0, c.ranks / 2, c.ranks - 1}[row[5]]
		if _, scaled := c.redop.Scale(); scaled && !c.dtype.Float() {
			c.redop = goccl.Sum
		}
		shapes[i] = c
	}
	if s.Only != nil {
		shapes = slices.DeleteFunc(shapes, func(c shape) bool { return !s.Only(c.form.name, c.dtype, c.redop) })
	}
	slices.SortStableFunc(shapes, func(a, b shape) int { return a.ranks - b.ranks })
	return shapes
}

// matrix runs the rows. Rows of one rank count share their groups, so that each
// operation also meets what the one before it left behind.
func (s *suite) matrix(t *testing.T) {
	shapes := s.rows(testing.Short())
	t.Logf("%d cases, seed %#x", len(shapes), s.Seed)
	for len(shapes) > 0 {
		n := shapes[0].ranks
		end := slices.IndexFunc(shapes, func(c shape) bool { return c.ranks != n })
		if end < 0 {
			end = len(shapes)
		}
		t.Run(fmt.Sprintf("ranks%d", n), func(t *testing.T) {
			gs := s.groups(t, n)
			for i := range shapes[:end] {
				c := &shapes[i]
				guard(t, c.String(), func() {
					errs := each(gs, func(ctx context.Context, g *processgroup.Group) error { return c.form.fn(ctx, g, c) })
					for r, err := range errs {
						if err != nil {
							t.Errorf("seed %#x: %v: rank %d: %v", s.Seed, c, r, err)
						}
					}
				})
				s.memory.reset()
				if t.Failed() {
					return // the group may have failed: what follows would only repeat it
				}
			}
		})
		shapes = shapes[end:]
	}
}

// operands returns count elements of rank for a reduction.
func (c *shape) operands(rank, count int) vec {
	v := newVec(c.dtype, count, c.offset)
	for i := range count {
		v.set(i, operand(c.dtype, c.redop, rank, i, c.salt))
	}
	return v
}

// patterns returns count elements of rank to move.
func (c *shape) patterns(rank, count int) vec {
	v := newVec(c.dtype, count, c.offset)
	for i := range count {
		v.set(i, pattern(rank, i, c.salt))
	}
	return v
}

// blank returns count elements that no result has by chance.
func (c *shape) blank(rank, count int) vec {
	v := newVec(c.dtype, count, c.offset)
	for i := range count {
		v.set(i, pattern(rank+1000, i, ^c.salt))
	}
	return v
}

// op is the reduction that rank passes.
func (c *shape) op(rank int) goccl.ReduceOp {
	if _, scaled := c.redop.Scale(); scaled {
		return goccl.PreMulSum(scaleOf(rank))
	}
	return c.redop
}

// reducible reports whether the reducing forms apply; the 8-bit floats only move.
func (c *shape) reducible() bool { return c.dtype.Reducible() }

// moved compares elements [at, at+count) of v with what rank moved from element
// first on.
func (c *shape) moved(v vec, at, count, rank, first int) error {
	for i := range count {
		w := want{exact: true, bits: pattern(rank, first+i, c.salt)}
		if err := w.check(v, at+i); err != nil {
			return fmt.Errorf("from rank %d: %w", rank, err)
		}
	}
	return nil
}

// same compares v with what make returned: it must not have been touched.
func same(v, was vec, count int) error {
	for i := range count {
		if err := (want{exact: true, bits: was.bits(i)}).check(v, i); err != nil {
			return fmt.Errorf("input was changed: %w", err)
		}
	}
	return nil
}
