package pgtest

import (
	"fmt"
	"math"

	"github.com/goccl/goccl"
)

// The reference is written from the definitions: one element at a time, integers
// in 64 bits cut to their width, floats in float64.

// operand is what rank puts in at element i for a reduction: another value for
// each rank and element, exact in every type, and such that sums and products of
// a few ranks stay exact too.
func operand(d goccl.DType, op goccl.ReduceOp, rank, i int, salt uint64) uint64 {
	h := mix(salt ^ uint64(rank)<<40 ^ uint64(i))
	if !d.Float() {
		return h // any bits: integers wrap
	}
	if op == goccl.Prod {
		return bitsOf(d, [...]float64{1, 2, 0.5, -1, -2, -0.5}[h%6])
	}
	if _, scaled := op.Scale(); scaled {
		return bitsOf(d, float64(int(h%15)-7)) // sums of halves must fit into 8 bits
	}
	return bitsOf(d, float64(int(h%31)-15))
}

// pattern is what rank moves at element i: any bits, also those of NaNs.
func pattern(rank, i int, salt uint64) uint64 {
	return mix(salt ^ uint64(rank)<<40 ^ uint64(i) ^ 0x9e37)
}

// mix is the finaliser of splitmix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// want is what an element must be: bits, or a number within tol.
type want struct {
	exact bool
	bits  uint64
	num   float64
	tol   float64
}

// check compares element i of v.
func (w want) check(v vec, i int) error {
	if w.exact {
		mask := uint64(math.MaxUint64) >> (64 - 8*v.dtype().Size())
		if got := v.bits(i); got != w.bits&mask {
			return fmt.Errorf("element %d is %#x, want %#x", i, got, w.bits&mask)
		}
		return nil
	}
	if got := v.number(i); !(math.Abs(got-w.num) <= w.tol) {
		return fmt.Errorf("element %d is %v, want %v within %v", i, got, w.num, w.tol)
	}
	return nil
}

// scaleOf is the factor of a rank in a PreMulSum: exact, and not the same on all.
func scaleOf(rank int) float32 { return [...]float32{0.5, 2, 1}[rank%3] }

// reduced is the reduction of element i over n ranks.
func reduced(d goccl.DType, op goccl.ReduceOp, n, i int, salt uint64) want {
	if !d.Float() {
		return want{exact: true, bits: reducedInt(d, op, n, i, salt)}
	}
	_, scaled := op.Scale()
	acc, size := 0.0, 0.0
	for r := range n {
		x := numberOf(d, operand(d, op, r, i, salt))
		if scaled {
			x *= float64(scaleOf(r))
		}
		size += math.Abs(x)
		switch {
		case r == 0:
			acc = x
		case op == goccl.Prod:
			acc *= x
		case op == goccl.Min:
			acc = min(acc, x)
		case op == goccl.Max:
			acc = max(acc, x)
		default:
			acc += x
		}
	}
	if op == goccl.Avg {
		acc, size = acc/float64(n), size/float64(n)
	}
	return want{num: acc, tol: tolerance(d, op, n, size)}
}

// tolerance is the largest allowed error of a reduction over n ranks of values
// whose magnitudes add up to size, by dtype, reduction and rank count. The
// operands are chosen so that everything but the division of Avg is exact; that
// may be rounded once for each rank, as an engine divides before or after adding.
func tolerance(d goccl.DType, op goccl.ReduceOp, n int, size float64) float64 {
	if op != goccl.Avg || n&(n-1) == 0 {
		return 0
	}
	return float64(n) * unit(d) * size
}

// unit is half of the distance from 1 to the next value.
func unit(d goccl.DType) float64 {
	switch d {
	case goccl.F64:
		return 1.0 / (1 << 53)
	case goccl.F32:
		return 1.0 / (1 << 24)
	case goccl.F16:
		return 1.0 / (1 << 11)
	}
	return 1.0 / (1 << 8)
}

// reducedInt is reduced for integers: all in two's complement of the width of d.
func reducedInt(d goccl.DType, op goccl.ReduceOp, n, i int, salt uint64) uint64 {
	acc := narrow(d, operand(d, op, 0, i, salt))
	for r := 1; r < n; r++ {
		x := narrow(d, operand(d, op, r, i, salt))
		switch op {
		case goccl.Prod:
			acc *= x
		case goccl.Min:
			if less(d, x, acc) {
				acc = x
			}
		case goccl.Max:
			if less(d, acc, x) {
				acc = x
			}
		default:
			acc += x
		}
		acc = narrow(d, acc)
	}
	if op != goccl.Avg {
		return acc
	}
	if signed(d) {
		return uint64(int64(acc) / int64(n))
	}
	return acc / uint64(n)
}

func signed(d goccl.DType) bool { return d == goccl.I8 || d == goccl.I32 || d == goccl.I64 }

// narrow cuts x to the width of d and extends it by sign or zero.
func narrow(d goccl.DType, x uint64) uint64 {
	shift := 64 - 8*d.Size()
	if signed(d) {
		return uint64(int64(x<<shift) >> shift)
	}
	return x << shift >> shift
}

func less(d goccl.DType, a, b uint64) bool {
	if signed(d) {
		return int64(a) < int64(b)
	}
	return a < b
}
