package simd

import "github.com/goccl/goccl"

const (
	dtypes     = goccl.U64 + 1 // the reducible types are the first ones
	operations = goccl.Max + 1

	// piece bounds the bytes of each operand in one call of a kernel: some 5 us of
	// work, the longest that a stop of the world has to wait.
	piece = 64 << 10
)

// reducer is the pair of kernels for one element type and operation. pair is
// dst = a op b; rows is dst = src[0] op ... op src[count-1] for count >= 2, all
// addresses moved on by offset. Both work on whole granules.
type reducer struct {
	pair func(dst, a, b, bytes uintptr)
	rows func(dst uintptr, src *uintptr, count, offset, bytes uintptr)
}

// scaler is the pair of kernels that multiply and divide by one factor, given by
// its bits: a float64 for f64, a float32 for the other types.
type scaler struct {
	multiply func(dst, src, bytes uintptr, factor uint64)
	divide   func(dst, src, bytes uintptr, factor uint64)
}

// level is one way to compute everything. A granule is the smallest number of
// bytes that its kernels handle, a power of two; 0 says that there are none.
type level struct {
	name    string
	granule uintptr
	stream  func(dst, src, bytes uintptr)
	reduce  [dtypes][operations]reducer
	scale   [dtypes]scaler
}

var genericLevel = level{name: "generic"}

// active is set before main begins; only tests change it, between their calls.
var active = levels()[0]

// Level names the instruction set in use: "avx512", "avx2" or "generic".
func Level() string { return active.name }

// whole returns how many of the bytes the level's kernels can take.
func (l *level) whole(bytes uintptr) uintptr {
	if l.granule == 0 {
		return 0
	}
	return bytes &^ (l.granule - 1)
}

// index folds the operation to its place in the tables. Avg and PreMulSum add
// here; their scaling is a step of its own.
func index(op goccl.ReduceOp) goccl.ReduceOp {
	if k := op.Kind(); k <= goccl.Max {
		return k
	}
	return goccl.Sum
}
