package pgtest

import (
	"math"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
)

// vec is memory of one element type, looked at as bits and as numbers.
type vec interface {
	// buffer returns it as it lies with rank in m, with the values that it has now.
	buffer(m *memory, rank int) device.Buffer
	dtype() goccl.DType
	bits(i int) uint64
	set(i int, bits uint64)
	// number is the value for floats; integers are compared by their bits.
	number(i int) float64
}

// vecOf is a slice as a vec. as is its element type, which for the 8-bit floats
// is not that of T.
type vecOf[T goccl.Number] struct {
	s    []T
	as   goccl.DType
	skew int // bytes before it

	home  *arena // where buffer has put it; nil: on the host
	stale bool   // an operation may have changed it there
}

// newVec returns n elements that begin offset elements after an aligned address.
func newVec(d goccl.DType, n, offset int) vec {
	switch d {
	case goccl.F32:
		return makeVec[float32](d, n, offset)
	case goccl.F64:
		return makeVec[float64](d, n, offset)
	case goccl.F16:
		return makeVec[goccl.Float16](d, n, offset)
	case goccl.BF16:
		return makeVec[goccl.BFloat16](d, n, offset)
	case goccl.I8:
		return makeVec[int8](d, n, offset)
	case goccl.I32:
		return makeVec[int32](d, n, offset)
	case goccl.U32:
		return makeVec[uint32](d, n, offset)
	case goccl.I64:
		return makeVec[int64](d, n, offset)
	case goccl.U64:
		return makeVec[uint64](d, n, offset)
	}
	return makeVec[uint8](d, n, offset)
}

func makeVec[T goccl.Number](d goccl.DType, n, offset int) vec {
	return &vecOf[T]{s: make([]T, offset+n)[offset:], as: d, skew: offset * d.Size()}
}

func (v *vecOf[T]) buffer(m *memory, rank int) device.Buffer {
	b := v.onHost()
	if m == nil {
		return b
	}
	v.home, v.stale = m.ranks[rank], len(v.s) > 0
	return m.place(rank, b, v.skew)
}

func (v *vecOf[T]) onHost() device.Buffer {
	b := device.SliceOf(v.s)
	b.DType = v.as
	return b
}

func (v *vecOf[T]) dtype() goccl.DType { return v.as }

func (v *vecOf[T]) bits(i int) uint64 {
	if v.stale {
		v.home.get(device.HostBytes(v.onHost()))
		v.stale = false
	}
	switch x := any(v.s[i]).(type) {
	case float32:
		return uint64(math.Float32bits(x))
	case float64:
		return math.Float64bits(x)
	case goccl.Float16:
		return uint64(x)
	case goccl.BFloat16:
		return uint64(x)
	case int8:
		return uint64(uint8(x))
	case uint8:
		return uint64(x)
	case int32:
		return uint64(uint32(x))
	case uint32:
		return uint64(x)
	case int64:
		return uint64(x)
	case uint64:
		return x
	}
	return 0
}

func (v *vecOf[T]) set(i int, bits uint64) {
	switch p := any(&v.s[i]).(type) {
	case *float32:
		*p = math.Float32frombits(uint32(bits))
	case *float64:
		*p = math.Float64frombits(bits)
	case *goccl.Float16:
		*p = goccl.Float16(bits)
	case *goccl.BFloat16:
		*p = goccl.BFloat16(bits)
	case *int8:
		*p = int8(bits)
	case *uint8:
		*p = uint8(bits)
	case *int32:
		*p = int32(bits)
	case *uint32:
		*p = uint32(bits)
	case *int64:
		*p = int64(bits)
	case *uint64:
		*p = bits
	}
}

func (v *vecOf[T]) number(i int) float64 { return numberOf(v.as, v.bits(i)) }

// numberOf returns the value of bits as a float of type d, 0 for other types.
func numberOf(d goccl.DType, bits uint64) float64 {
	switch d {
	case goccl.F32:
		return float64(math.Float32frombits(uint32(bits)))
	case goccl.F64:
		return math.Float64frombits(bits)
	case goccl.F16:
		return float64(goccl.Float16(bits).Float32())
	case goccl.BF16:
		return float64(goccl.BFloat16(bits).Float32())
	}
	return 0
}

// bitsOf is the inverse of numberOf for values that d holds exactly.
func bitsOf(d goccl.DType, x float64) uint64 {
	switch d {
	case goccl.F32:
		return uint64(math.Float32bits(float32(x)))
	case goccl.F64:
		return math.Float64bits(x)
	case goccl.F16:
		return uint64(goccl.ToFloat16(float32(x)))
	case goccl.BF16:
		return uint64(goccl.ToBFloat16(float32(x)))
	}
	return uint64(int64(x))
}
