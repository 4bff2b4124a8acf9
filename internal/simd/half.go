package simd

import "github.com/goccl/goccl"

// reduceHalves is reduceRows for f16 and bf16: the row is accumulated in float32
// and rounded once.
func reduceHalves(d goccl.DType, op goccl.ReduceOp, dst uintptr, src []uintptr, from uintptr, n int) {
	var accumulator, operand [block]float32
	for i := 0; i < n; i += block {
		count := min(block, n-i)
		acc, x := accumulator[:count], operand[:count]
		offset := from + 2*uintptr(i)
		widen(d, acc, src[0]+offset)
		for _, s := range src[1:] {
			widen(d, x, s+offset)
			combine(op, acc, acc, x, nan32)
		}
		narrow(d, dst+offset, acc)
	}
}

// widen reads len(dst) halves at src.
func widen(d goccl.DType, dst []float32, src uintptr) {
	if d == goccl.F16 {
		for i, h := range at[goccl.Float16](src, len(dst)) {
			dst[i] = h.Float32()
		}
		return
	}
	for i, h := range at[goccl.BFloat16](src, len(dst)) {
		dst[i] = h.Float32()
	}
}

// narrow rounds src to halves at dst. Every NaN in src is the canonical one, and
// stays it.
func narrow(d goccl.DType, dst uintptr, src []float32) {
	if d == goccl.F16 {
		out := at[goccl.Float16](dst, len(src))
		for i, f := range src {
			out[i] = goccl.ToFloat16(f)
		}
		return
	}
	out := at[goccl.BFloat16](dst, len(src))
	for i, f := range src {
		out[i] = goccl.ToBFloat16(f)
	}
}
