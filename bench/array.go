package main

import (
	"math"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
)

// array is a slice of any element type.
type array interface {
	buffer() device.Buffer
	fill(f func(i int) float64)
	// copy takes the elements of another array of the same type.
	copy(from array)
	// wrong counts the elements that differ from f, which is rounded to the type.
	wrong(f func(i int) float64) int
}

type typed[T goccl.Number] struct {
	s    []T
	from func(float64) T
}

func (a typed[T]) buffer() device.Buffer { return device.SliceOf(a.s) }

func (a typed[T]) fill(f func(i int) float64) {
	for i := range a.s {
		a.s[i] = a.from(f(i))
	}
}

func (a typed[T]) copy(from array) { copy(a.s, from.(typed[T]).s) }

func (a typed[T]) wrong(f func(i int) float64) int {
	n := 0
	for i, v := range a.s {
		if v != a.from(f(i)) {
			n++
		}
	}
	return n
}

// whole converts to an integer type, toward zero as an average of integers does.
func whole[T int8 | uint8 | int32 | uint32 | int64 | uint64](f float64) T {
	return T(int64(math.Trunc(f)))
}

// newArray makes n elements of type d.
func newArray(d goccl.DType, n int) array {
	switch d {
	case goccl.F32:
		return typed[float32]{make([]float32, n), func(f float64) float32 { return float32(f) }}
	case goccl.F64:
		return typed[float64]{make([]float64, n), func(f float64) float64 { return f }}
	case goccl.F16:
		return typed[goccl.Float16]{make([]goccl.Float16, n), func(f float64) goccl.Float16 { return goccl.ToFloat16(float32(f)) }}
	case goccl.BF16:
		return typed[goccl.BFloat16]{make([]goccl.BFloat16, n), func(f float64) goccl.BFloat16 { return goccl.ToBFloat16(float32(f)) }}
	case goccl.I8:
		return typed[int8]{make([]int8, n), whole[int8]}
	case goccl.I32:
		return typed[int32]{make([]int32, n), whole[int32]}
	case goccl.U32:
		return typed[uint32]{make([]uint32, n), whole[uint32]}
	case goccl.I64:
		return typed[int64]{make([]int64, n), whole[int64]}
	case goccl.U64:
		return typed[uint64]{make([]uint64, n), whole[uint64]}
	default:
		return typed[uint8]{make([]uint8, n), whole[uint8]}
	}
}

// value is what rank puts into element i: small whole numbers, different on every
// rank and element, of which sums over any number of ranks that a machine can
// hold are exact in most types. i counts through the whole of a rank's buffer.
func value(rank, i int) float64 { return float64((rank*7 + i*3 + i/11) % 5) }

// reduced is the reduction of element i over n ranks.
func reduced(op goccl.ReduceOp, n, i int) float64 {
	v := value(0, i)
	for r := 1; r < n; r++ {
		x := value(r, i)
		switch op {
		case goccl.Prod:
			v *= x
		case goccl.Min:
			v = min(v, x)
		case goccl.Max:
			v = max(v, x)
		default:
			v += x
		}
	}
	if op == goccl.Avg {
		v /= float64(n)
	}
	return v
}
