package goccl

import "math"

// Float16 is an IEEE 754 half (1 sign, 5 exponent, 10 mantissa bits).
type Float16 uint16

// BFloat16 is the upper half of a float32 (1 sign, 8 exponent, 7 mantissa bits).
type BFloat16 uint16

// ToFloat16 rounds f to the nearest half, ties to even. Values too large become
// infinite, a NaN stays a quiet NaN.
func ToFloat16(f float32) Float16 {
	b := math.Float32bits(f)
	sign := uint16(b>>16) & 0x8000
	abs := b & 0x7fffffff
	switch {
	case abs > 0x7f800000: // NaN: keep the upper payload bits, make it quiet
		return Float16(sign | 0x7e00 | uint16(abs>>13)&0x3ff)
	case abs >= 0x477ff000: // rounds to 65536 or more
		return Float16(sign | 0x7c00)
	case abs < 0x38800000: // below 2^-14: subnormal half or zero
		// Adding 0.5 aligns the mantissa so that its last bit is 2^-24, and the
		// float32 unit rounds to even for us.
		const magic = uint32(0x3f000000)
		r := math.Float32frombits(abs) + math.Float32frombits(magic)
		return Float16(sign | uint16(math.Float32bits(r)-magic))
	default:
		odd := (abs >> 13) & 1
		return Float16(sign | uint16((abs-0x38000000+0xfff+odd)>>13))
	}
}

// Float32 returns the exact value of h.
func (h Float16) Float32() float32 {
	sign := uint32(h&0x8000) << 16
	exp := uint32(h>>10) & 0x1f
	man := uint32(h & 0x3ff)
	switch exp {
	case 0x1f:
		if man != 0 {
			man |= 0x200 // a signalling NaN becomes quiet, as the hardware does
		}
		return math.Float32frombits(sign | 0x7f800000 | man<<13)
	case 0:
		f := float32(man) * (1.0 / (1 << 24))
		return math.Float32frombits(sign | math.Float32bits(f))
	default:
		return math.Float32frombits(sign | (exp+112)<<23 | man<<13)
	}
}

// ToBFloat16 rounds f to the nearest bfloat16, ties to even; a NaN stays a
// quiet NaN.
func ToBFloat16(f float32) BFloat16 {
	b := math.Float32bits(f)
	if b&0x7fffffff > 0x7f800000 {
		return BFloat16(b>>16 | 0x40)
	}
	return BFloat16((b + 0x7fff + (b>>16)&1) >> 16)
}

// Float32 returns the exact value of h.
func (h BFloat16) Float32() float32 { return math.Float32frombits(uint32(h) << 16) }
