package simd

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/goccl/goccl"
)

// The reference of the tests works on one row of element bits at a time, shares
// no code with the package, and rounds halves in integers.

// refReduce returns row[0] op row[1] op ... for a row of at least two elements.
func refReduce(d goccl.DType, op goccl.ReduceOp, row []uint64) uint64 {
	acc := row[0]
	switch d {
	case goccl.F32, goccl.F16, goccl.BF16:
		acc := refWiden(d, acc)
		for _, x := range row[1:] {
			acc = refFloat32(op, acc, refWiden(d, x))
		}
		return refNarrow(d, acc)
	case goccl.F64:
		for _, x := range row[1:] {
			acc = math.Float64bits(refFloat64(op, math.Float64frombits(acc), math.Float64frombits(x)))
		}
		return acc
	}
	for _, x := range row[1:] {
		acc = refInteger(d, op, acc, x)
	}
	return acc
}

func refWiden(d goccl.DType, b uint64) float32 {
	switch d {
	case goccl.F32:
		return math.Float32frombits(uint32(b))
	case goccl.BF16:
		return math.Float32frombits(uint32(b) << 16)
	}
	sign, exponent, mantissa := 1.0, int(b>>10)&31, float64(b&1023)
	if b&0x8000 != 0 {
		sign = -1
	}
	switch exponent {
	case 31:
		if mantissa != 0 {
			return float32(math.NaN())
		}
		return float32(math.Inf(int(sign)))
	case 0:
		return float32(math.Copysign(math.Ldexp(mantissa, -24), sign))
	}
	return float32(sign * math.Ldexp(mantissa+1024, exponent-25))
}

func refNarrow(d goccl.DType, f float32) uint64 {
	switch {
	case d == goccl.F32 && f != f:
		return 0x7fc00000
	case d == goccl.F32:
		return uint64(math.Float32bits(f))
	case d == goccl.F16:
		return refRound(f, 10, 15)
	default:
		return refRound(f, 7, 127)
	}
}

// refRound rounds f to the nearest value with the given mantissa bits and
// exponent bias, ties to even, in integers alone.
func refRound(f float32, mantissaBits, bias int) uint64 {
	b := math.Float32bits(f)
	exponentBits := bits.Len(uint(bias)) + 1
	sign := uint64(b>>31) << (mantissaBits + exponentBits)
	infinity := uint64(1)<<exponentBits - 1
	magnitude := b & 0x7fffffff
	if magnitude > 0x7f800000 {
		return infinity<<mantissaBits | 1<<(mantissaBits-1)
	}
	if magnitude == 0x7f800000 {
		return sign | infinity<<mantissaBits
	}
	// |f| = m * 2^e exactly.
	m, e := uint64(magnitude&0x7fffff), int(magnitude>>23)
	if e == 0 {
		e = 1
	} else {
		m |= 1 << 23
	}
	e -= 150
	// The last place of the result is 2^last: that of the subnormals, or higher.
	last := max(1-bias-mantissaBits, e+bits.Len64(m)-1-mantissaBits)
	var q uint64
	if shift := last - e; shift <= 0 {
		q = m << -shift
	} else if shift < 64 {
		rest := m & (1<<shift - 1)
		q = m >> shift
		if half := uint64(1) << (shift - 1); rest > half || rest == half && q&1 == 1 {
			q++
		}
	}
	// A carry out of the mantissa runs into the exponent, as it should.
	biased := uint64(last - (1 - bias - mantissaBits))
	result := biased<<mantissaBits + q
	return sign | min(result, infinity<<mantissaBits)
}

func refFloat32(op goccl.ReduceOp, a, b float32) float32 {
	switch op {
	case goccl.Prod:
		return a * b
	case goccl.Min, goccl.Max: // exact through float64
		return float32(refFloat64(op, float64(a), float64(b)))
	}
	return a + b
}

func refFloat64(op goccl.ReduceOp, a, b float64) float64 {
	var r float64
	switch {
	case a != a || b != b:
		r = math.NaN()
	case op == goccl.Prod:
		r = a * b
	case op == goccl.Min && (a < b || a == b && math.Signbit(a)):
		r = a
	case op == goccl.Max && (a > b || a == b && !math.Signbit(a)):
		r = a
	case op == goccl.Min || op == goccl.Max:
		r = b
	default:
		r = a + b
	}
	if r != r {
		return math.Float64frombits(0x7ff8000000000000)
	}
	return r
}

func refInteger(d goccl.DType, op goccl.ReduceOp, a, b uint64) uint64 {
	less := a < b
	switch d {
	case goccl.I8:
		less = int8(a) < int8(b)
	case goccl.I32:
		less = int32(a) < int32(b)
	case goccl.I64:
		less = int64(a) < int64(b)
	}
	var r uint64
	switch {
	case op == goccl.Prod:
		r = a * b
	case op == goccl.Min && less, op == goccl.Max && !less:
		r = a
	case op == goccl.Min, op == goccl.Max:
		r = b
	default:
		r = a + b
	}
	return r & (1<<(8*d.Size()) - 1)
}

// load and store access element i of raw memory as bits.
func load(d goccl.DType, mem []byte, i int) uint64 {
	switch d.Size() {
	case 1:
		return uint64(mem[i])
	case 2:
		return uint64(binary.NativeEndian.Uint16(mem[2*i:]))
	case 4:
		return uint64(binary.NativeEndian.Uint32(mem[4*i:]))
	}
	return binary.NativeEndian.Uint64(mem[8*i:])
}

func store(d goccl.DType, mem []byte, i int, v uint64) {
	switch d.Size() {
	case 1:
		mem[i] = byte(v)
	case 2:
		binary.NativeEndian.PutUint16(mem[2*i:], uint16(v))
	case 4:
		binary.NativeEndian.PutUint32(mem[4*i:], uint32(v))
	default:
		binary.NativeEndian.PutUint64(mem[8*i:], v)
	}
}
