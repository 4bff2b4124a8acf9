package simd

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
)

var floats = []goccl.DType{goccl.F32, goccl.F64, goccl.F16, goccl.BF16}

// TestScale compares with the reference on all lengths, alignments and in place.
func TestScale(t *testing.T) {
	for _, d := range floats {
		for _, f := range []float32{0.5, 0.1, -3, 1, float32(math.Inf(1)), 1e-40} {
			ref := func(x uint64) uint64 {
				if d == goccl.F64 {
					return math.Float64bits(refFloat64(goccl.Prod, math.Float64frombits(x), float64(f)))
				}
				return refNarrow(d, refWiden(d, x)*f)
			}
			eachLevel(t, func(t *testing.T) {
				unaryCases(t, d, ref, func(dst, src uintptr, n int) { Scale(d, dst, src, n, f) })
			})
		}
	}
}

// TestDivide has powers of two, where a product serves, and other divisors,
// also such that do not fit the element type.
func TestDivide(t *testing.T) {
	for _, d := range goccl.DTypes() {
		for _, div := range []int{1, 2, 3, 7, 8, 200, 256, 1 << 20, 1<<33 + 1} {
			ref := func(x uint64) uint64 { return refDivide(d, x, div) }
			eachLevel(t, func(t *testing.T) {
				unaryCases(t, d, ref, func(dst, src uintptr, n int) { Divide(d, dst, src, n, div) })
			})
		}
	}
}

func refDivide(d goccl.DType, x uint64, div int) uint64 {
	if div == 1 {
		return x
	}
	mask := uint64(1)<<(8*d.Size()) - 1
	switch d {
	case goccl.F64:
		return math.Float64bits(refFloat64(goccl.Sum, math.Float64frombits(x)/float64(div), math.Copysign(0, -1)))
	case goccl.F32, goccl.F16, goccl.BF16:
		return refNarrow(d, refWiden(d, x)/float32(div))
	case goccl.I8:
		return uint64(int(int8(x))/div) & mask
	case goccl.I32:
		return uint64(int(int32(x))/div) & mask
	case goccl.I64:
		return uint64(int(x) / div)
	}
	return x / uint64(div)
}

func unaryCases(t *testing.T, d goccl.DType, ref func(uint64) uint64, call func(dst, src uintptr, n int)) {
	for _, n := range lengths {
		for _, dst := range []int{0, 1} { // in place, apart
			a, want := newArena(d, 2, n, n&1), newArena(d, 2, n, n&1)
			fill(d, a.bytes(0), n, 7)
			fill(d, want.bytes(0), n, 7)
			for i := range n {
				store(d, want.bytes(dst), i, ref(load(d, a.bytes(0), i)))
			}
			call(a.addr(dst), a.addr(0), n)
			for i := range n {
				if got, should := load(d, a.bytes(dst), i), load(d, want.bytes(dst), i); got != should {
					require.Failf(t, "wrong bits", "%s n=%d result in %d: element %d (%#x) gives %#x, not %#x", d, n, dst, i, load(d, want.bytes(0), i), got, should)
				}
			}
			require.True(t, a.same(want, 2), "%s n=%d result in %d: memory outside the result changed", d, n, dst)
			a.keep()
		}
	}
}
