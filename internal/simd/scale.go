package simd

import (
	"math"

	"github.com/goccl/goccl"
)

// Scale sets dst[i] = src[i] * f for n elements of the float type d: the first
// step of PreMulSum. f64 multiplies by float64(f); halves multiply in float32 and
// round once. dst is equal to src or disjoint from it.
func Scale(d goccl.DType, dst, src uintptr, n int, f float32) {
	if n <= 0 {
		return
	}
	bytes := uintptr(n) * sizes[d]
	whole := active.whole(bytes)
	factor := uint64(math.Float32bits(f))
	if d == goccl.F64 {
		factor = math.Float64bits(float64(f))
	}
	eachScale(active.scale[d].multiply, dst, src, whole, factor)
	if whole < bytes {
		scaleGeneric(d, dst+whole, src+whole, int((bytes-whole)/sizes[d]), f)
	}
}

// Divide sets dst[i] = src[i] / div for n elements of type d: the last step of
// Avg, where div >= 1 is the number of ranks. Floats divide in the type they are
// accumulated in and round once more for halves; integers truncate toward zero.
// A division by one copies. dst is equal to src or disjoint from it.
func Divide(d goccl.DType, dst, src uintptr, n, div int) {
	switch {
	case n <= 0:
		return
	case div <= 1:
		Copy(dst, src, n*int(sizes[d]))
		return
	case !d.Float():
		divideIntegers(d, dst, src, n, div)
		return
	case div&(div-1) == 0: // the reciprocal is exact, so the product has the same bits
		Scale(d, dst, src, n, 1/float32(div))
		return
	}
	bytes := uintptr(n) * sizes[d]
	whole := active.whole(bytes)
	divisor := uint64(math.Float32bits(float32(div)))
	if d == goccl.F64 {
		divisor = math.Float64bits(float64(div))
	}
	eachScale(active.scale[d].divide, dst, src, whole, divisor)
	if whole < bytes {
		divideFloats(d, dst+whole, src+whole, int((bytes-whole)/sizes[d]), div)
	}
}

func eachScale(f func(dst, src, bytes uintptr, factor uint64), dst, src, bytes uintptr, factor uint64) {
	for offset := uintptr(0); offset < bytes; offset += piece {
		callScale(f, dst+offset, src+offset, min(piece, bytes-offset), factor)
	}
}

// callScale is a safe point; see callPair.
//
//go:noinline
func callScale(f func(dst, src, bytes uintptr, factor uint64), dst, src, bytes uintptr, factor uint64) {
	f(dst, src, bytes, factor)
}

func scaleGeneric(d goccl.DType, dst, src uintptr, n int, f float32) {
	switch d {
	case goccl.F32:
		multiply(at[float32](dst, n), at[float32](src, n), f, nan32)
	case goccl.F64:
		multiply(at[float64](dst, n), at[float64](src, n), float64(f), nan64)
	case goccl.F16, goccl.BF16:
		scaleHalves(d, dst, src, n, f)
	}
}

func divideFloats(d goccl.DType, dst, src uintptr, n, div int) {
	switch d {
	case goccl.F32:
		divide(at[float32](dst, n), at[float32](src, n), float32(div), nan32)
	case goccl.F64:
		divide(at[float64](dst, n), at[float64](src, n), float64(div), nan64)
	case goccl.F16, goccl.BF16:
		divideHalves(d, dst, src, n, float32(div))
	}
}

// scaleHalves widens block by block.
func scaleHalves(d goccl.DType, dst, src uintptr, n int, f float32) {
	var scratch [block]float32
	for i := 0; i < n; i += block {
		v := scratch[:min(block, n-i)]
		widen(d, v, src+2*uintptr(i))
		multiply(v, v, f, nan32)
		narrow(d, dst+2*uintptr(i), v)
	}
}

func divideHalves(d goccl.DType, dst, src uintptr, n int, div float32) {
	var scratch [block]float32
	for i := 0; i < n; i += block {
		v := scratch[:min(block, n-i)]
		widen(d, v, src+2*uintptr(i))
		divide(v, v, div, nan32)
		narrow(d, dst+2*uintptr(i), v)
	}
}

func multiply[T float32 | float64](dst, src []T, f, nan T) {
	for i, v := range src {
		dst[i] = canonical(v*f, nan)
	}
}

func divide[T float32 | float64](dst, src []T, div, nan T) {
	for i, v := range src {
		dst[i] = canonical(v/div, nan)
	}
}

func divideIntegers(d goccl.DType, dst, src uintptr, n, div int) {
	switch d {
	case goccl.I8:
		truncate(at[int8](dst, n), at[int8](src, n), int64(div))
	case goccl.U8:
		truncate(at[uint8](dst, n), at[uint8](src, n), int64(div))
	case goccl.I32:
		truncate(at[int32](dst, n), at[int32](src, n), int64(div))
	case goccl.U32:
		truncate(at[uint32](dst, n), at[uint32](src, n), int64(div))
	case goccl.I64:
		truncate(at[int64](dst, n), at[int64](src, n), int64(div))
	case goccl.U64:
		truncate(at[uint64](dst, n), at[uint64](src, n), uint64(div))
	}
}

// truncate divides in a type W that holds both the values and the divisor, which
// may exceed the element type.
func truncate[T number, W int64 | uint64](dst, src []T, div W) {
	for i, v := range src {
		dst[i] = T(W(v) / div)
	}
}
