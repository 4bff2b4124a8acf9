package pgtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/internal/simd"
	processgroup "github.com/goccl/goccl/process_group"
	"github.com/goccl/goccl/process_group/backend/fake"
)

func TestCoverHoldsEveryPair(t *testing.T) {
	levels := []int{5, 3, 4, 2, 7}
	rows := cover(levels, rand.New(rand.NewPCG(1, 2)))
	require.Less(t, len(rows), 5*7*2, "far fewer rows than the product, which is 840")
	seen := make(map[pair]bool)
	for _, row := range rows {
		for f := range row {
			require.Less(t, row[f], levels[f])
			for g := f + 1; g < len(row); g++ {
				seen[pair{f, row[f], g, row[g]}] = true
			}
		}
	}
	require.Len(t, seen, len(newPairs(levels).order))
	require.Equal(t, rows, cover(levels, rand.New(rand.NewPCG(1, 2))), "the seed fixes the rows")
}

func TestSizeOfTheMatrix(t *testing.T) {
	for cases, most := range map[int]int{0: 400, 50: 50, 1000: 1000, 9999: maxCases} {
		s := &suite{Options: Options{Seed: 3, Cases: cases}}
		n := len(s.rows(false))
		require.LessOrEqual(t, n, most)
		require.GreaterOrEqual(t, n, min(most, 144), "every pair of the two largest factors")
		if cases != 0 {
			require.Equal(t, most, n)
		}
	}
}

// wrong spoils one element of the output on one rank: the smallest fault there is.
type wrong struct {
	processgroup.Backend
	rank int
}

func (w wrong) Wait(ctx context.Context, op *processgroup.Op) error {
	err := w.Backend.Wait(ctx, op)
	if err == nil {
		w.spoil(op)
	}
	return err
}

func (w wrong) spoil(op *processgroup.Op) {
	out := append([]device.Buffer{op.Dst}, op.DstList...)
	for _, t := range op.Batch {
		if t.Recv {
			out = append(out, t.Buf)
		}
	}
	other := make([]uint64, 1)
	for _, b := range out {
		if b.Count == 0 {
			continue
		}
		// The last element becomes another one: its bits turned around.
		at, size := b.Addr+uintptr(b.Bytes()-b.DType.Size()), b.DType.Size()
		simd.Copy(device.SliceOf(other).Addr, at, size)
		other[0] = ^other[0]
		simd.Copy(at, device.SliceOf(other).Addr, size)
		return
	}
}

// TestEveryFormSeesOneWrongElement runs each form on a backend that is right but
// for one element on one rank.
func TestEveryFormSeesOneWrongElement(t *testing.T) {
	const n = 3
	for f := range forms {
		for _, d := range []goccl.DType{goccl.F32, goccl.I8} {
			c := &shape{form: &forms[f], dtype: d, redop: goccl.Sum, count: 6, ranks: n, root: 1, salt: 9}
			control := fake.Groups(n, processgroup.Config{})
			for r, err := range run(t, control, func(ctx context.Context, g *processgroup.Group) error { return c.form.fn(ctx, g, c) }) {
				require.NoError(t, err, "%v: rank %d of a right backend", c, r)
			}
			closeAll(t, control)

			var gs []*processgroup.Group
			for r, b := range fake.Connect(n).Backends() {
				gs = append(gs, processgroup.New(processgroup.Config{Name: "wrong", Rank: r, Size: n, Backend: wrong{b, r}}))
			}
			errs := run(t, gs, func(ctx context.Context, g *processgroup.Group) error { return c.form.fn(ctx, g, c) })
			require.Error(t, errs[1], "%v", c)
			require.ErrorContains(t, errs[1], "element", "%v", c)
			closeAll(t, gs)
		}
	}
}

func TestReferenceOfIntegers(t *testing.T) {
	for _, d := range []goccl.DType{goccl.I8, goccl.U8, goccl.I32, goccl.U64} {
		for i := range 50 {
			sum, least := uint64(0), narrow(d, operand(d, goccl.Min, 0, i, 1))
			for r := range 4 {
				x := operand(d, goccl.Sum, r, i, 1)
				sum = narrow(d, sum+x)
				if less(d, narrow(d, x), least) {
					least = narrow(d, x)
				}
			}
			require.Equal(t, sum, reduced(d, goccl.Sum, 4, i, 1).bits, d)
			require.Equal(t, least, reduced(d, goccl.Min, 4, i, 1).bits, d)
		}
	}
	v := newVec(goccl.I8, 1, 0)
	v.set(0, 0x80)
	require.Error(t, want{exact: true, bits: 0x7f}.check(v, 0))
	require.NoError(t, want{exact: true, bits: uint64(0xffffffffffffff80)}.check(v, 0), "compared in the width of the type")
}

// TestOperandsAreExact holds that sums of the operands over eight ranks have no
// rounding in the narrowest type, so that the tolerance of zero is right.
func TestOperandsAreExact(t *testing.T) {
	for _, d := range []goccl.DType{goccl.BF16, goccl.F16, goccl.F32} {
		for _, op := range []goccl.ReduceOp{goccl.Sum, goccl.Prod, goccl.PreMulSum(1)} {
			for i := range 500 {
				w := reduced(d, op, 8, i, 77)
				require.Zero(t, w.tol)
				require.Equal(t, w.num, numberOf(d, bitsOf(d, w.num)), fmt.Sprint(d, op, i))
			}
		}
	}
}
