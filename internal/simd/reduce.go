package simd

import "github.com/goccl/goccl"

// Reduce sets dst[i] = src[0][i] op src[1][i] op ... for n elements of type d,
// left to right and in one pass. One source is copied. dst is equal to any of
// the sources or disjoint from it, never partly overlapping. Avg and PreMulSum
// add; see Scale and Divide. src is not kept.
func Reduce(d goccl.DType, op goccl.ReduceOp, dst uintptr, src []uintptr, n int) {
	if n <= 0 {
		return
	}
	bytes := uintptr(n) * sizes[d]
	switch len(src) {
	case 1:
		Copy(dst, src[0], int(bytes))
		return
	case 2:
		Reduce2(d, op, dst, src[0], src[1], n)
		return
	}
	op = index(op)
	whole := active.whole(bytes)
	kernel := active.reduce[d][op].rows
	table, count := noescape(src), uintptr(len(src))
	// The whole call stays near two full pieces of input, yet takes no less than
	// a page of each source.
	step := max(2*piece/count&^4095, 4096)
	for offset := uintptr(0); offset < whole; offset += step {
		callRows(kernel, dst, table, count, offset, min(step, whole-offset))
	}
	if whole < bytes {
		reduceGeneric(d, op, dst, src, whole, bytes)
	}
}

// Reduce2 sets dst[i] = a[i] op b[i] for n elements of type d. It is Reduce for
// two sources, without a table of them.
func Reduce2(d goccl.DType, op goccl.ReduceOp, dst, a, b uintptr, n int) {
	if n <= 0 {
		return
	}
	op = index(op)
	bytes := uintptr(n) * sizes[d]
	whole := active.whole(bytes)
	kernel := active.reduce[d][op].pair
	for offset := uintptr(0); offset < whole; offset += piece {
		callPair(kernel, dst+offset, a+offset, b+offset, min(piece, whole-offset))
	}
	if whole < bytes {
		src := [2]uintptr{a, b}
		reduceGeneric(d, op, dst, src[:], whole, bytes)
	}
}

// callPair and callRows are the safe points around the kernels: they have a
// frame, so they check for preemption on entry, and must not be inlined.
//
//go:noinline
func callPair(f func(dst, a, b, bytes uintptr), dst, a, b, bytes uintptr) { f(dst, a, b, bytes) }

//go:noinline
func callRows(f func(dst uintptr, src *uintptr, count, offset, bytes uintptr), dst uintptr, src *uintptr, count, offset, bytes uintptr) {
	f(dst, src, count, offset, bytes)
}
