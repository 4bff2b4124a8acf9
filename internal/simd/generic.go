package simd

import (
	"math"

	"github.com/goccl/goccl"
)

// number is the set of types that Go computes in.
type number interface {
	float32 | float64 | int8 | uint8 | int32 | uint32 | int64 | uint64
}

// The NaN of every computed result.
var (
	nan32 = math.Float32frombits(0x7fc00000)
	nan64 = math.Float64frombits(0x7ff8000000000000)
)

// block is how many elements of a row of three or more sources are accumulated
// at a time, on the stack.
const block = 64

// reduceGeneric is Reduce in plain Go for the bytes [from, to) of every operand.
func reduceGeneric(d goccl.DType, op goccl.ReduceOp, dst uintptr, src []uintptr, from, to uintptr) {
	n := int((to - from) / sizes[d])
	switch d {
	case goccl.F32:
		reduceRows(op, dst, src, from, n, nan32)
	case goccl.F64:
		reduceRows(op, dst, src, from, n, nan64)
	case goccl.F16, goccl.BF16:
		reduceHalves(d, op, dst, src, from, n)
	case goccl.I8:
		reduceRows[int8](op, dst, src, from, n, 0)
	case goccl.U8:
		reduceRows[uint8](op, dst, src, from, n, 0)
	case goccl.I32:
		reduceRows[int32](op, dst, src, from, n, 0)
	case goccl.U32:
		reduceRows[uint32](op, dst, src, from, n, 0)
	case goccl.I64:
		reduceRows[int64](op, dst, src, from, n, 0)
	case goccl.U64:
		reduceRows[uint64](op, dst, src, from, n, 0)
	}
}

// reduceRows accumulates blocks aside when there are more than two sources,
// because dst may be a source that is still to be read.
func reduceRows[T number](op goccl.ReduceOp, dst uintptr, src []uintptr, from uintptr, n int, nan T) {
	out := at[T](dst+from, n)
	if len(src) == 2 {
		combine(op, out, at[T](src[0]+from, n), at[T](src[1]+from, n), nan)
		return
	}
	var scratch [block]T
	for i := 0; i < n; i += block {
		end := min(i+block, n)
		acc := scratch[:end-i]
		combine(op, acc, at[T](src[0]+from, n)[i:end], at[T](src[1]+from, n)[i:end], nan)
		for _, s := range src[2:] {
			combine(op, acc, acc, at[T](s+from, n)[i:end], nan)
		}
		copy(out[i:end], acc)
	}
}

// combine is dst = a op b. The tests for NaN vanish for integers.
func combine[T number](op goccl.ReduceOp, dst, a, b []T, nan T) {
	a, b = a[:len(dst)], b[:len(dst)]
	switch op {
	case goccl.Sum:
		for i := range dst {
			dst[i] = canonical(a[i]+b[i], nan)
		}
	case goccl.Prod:
		for i := range dst {
			dst[i] = canonical(a[i]*b[i], nan)
		}
	case goccl.Min: // Go's own minimum propagates NaN and puts -0 below +0
		for i := range dst {
			dst[i] = canonical(min(a[i], b[i]), nan)
		}
	case goccl.Max:
		for i := range dst {
			dst[i] = canonical(max(a[i], b[i]), nan)
		}
	}
}

func canonical[T number](v, nan T) T {
	if v != v {
		return nan
	}
	return v
}
