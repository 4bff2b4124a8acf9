package goccl_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
)

// format is one 16-bit float, described by IEEE 754's parameters, from which the
// oracle computes values without sharing a line with the code under test.
type format struct {
	name     string
	exponent int // bits
	mantissa int // bits
	decode   func(bits uint16) float32
	encode   func(f float32) uint16
}

var formats = []format{
	{"f16", 5, 10, func(b uint16) float32 { return goccl.Float16(b).Float32() }, func(f float32) uint16 { return uint16(goccl.ToFloat16(f)) }},
	{"bf16", 8, 7, func(b uint16) float32 { return goccl.BFloat16(b).Float32() }, func(f float32) uint16 { return uint16(goccl.ToBFloat16(f)) }},
}

func (f format) infinity() uint16 { return uint16(1<<f.exponent-1) << f.mantissa }

// value returns what bits mean, by the definition: NaN where it is no number.
func (f format) value(bits uint16) float64 {
	sign := 1.0
	if bits&0x8000 != 0 {
		sign = -1
	}
	exp := int(bits>>f.mantissa) & (1<<f.exponent - 1)
	man := int(bits) & (1<<f.mantissa - 1)
	bias := 1<<(f.exponent-1) - 1
	switch {
	case exp == 1<<f.exponent-1 && man != 0:
		return math.NaN()
	case exp == 1<<f.exponent-1:
		return math.Inf(int(sign))
	case exp == 0:
		return math.Copysign(math.Ldexp(float64(man), 1-bias-f.mantissa), sign)
	}
	return sign * math.Ldexp(float64(man+1<<f.mantissa), exp-bias-f.mantissa)
}

// Every pattern means what the standard says, and comes back unchanged.
func TestHalfAllPatterns(t *testing.T) {
	for _, f := range formats {
		quiet := uint16(1) << (f.mantissa - 1)
		for b := range 1 << 16 {
			bits := uint16(b)
			got, want := f.decode(bits), f.value(bits)
			if math.IsNaN(want) {
				require.True(t, got != got, "%s %#04x", f.name, bits)
				require.Equal(t, bits|quiet, f.encode(got), "%s %#04x: sign and payload of a NaN stay", f.name, bits)
				continue
			}
			if float64(got) != want || math.Signbit(float64(got)) != math.Signbit(want) {
				t.Fatalf("%s %#04x is %g, not %g", f.name, bits, got, want)
			}
			if back := f.encode(got); back != bits {
				t.Fatalf("%s %#04x comes back as %#04x", f.name, bits, back)
			}
		}
	}
}

// Between each pair of neighbours the middle goes to the even one, and the
// float32 values beside the middle to the nearer one.
func TestHalfRoundsToNearestEven(t *testing.T) {
	for _, f := range formats {
		for lo := uint16(0); lo < f.infinity()-1; lo++ {
			hi := lo + 1
			middle := float32((f.value(lo) + f.value(hi)) / 2) // exact: float32 has more bits
			even := lo + lo&1
			for _, sign := range []uint16{0, 0x8000} {
				s := float32(1)
				if sign != 0 {
					s = -1
				}
				below := math.Nextafter32(middle, 0)
				above := math.Nextafter32(middle, float32(math.Inf(1)))
				if g := f.encode(s * middle); g != sign|even {
					t.Fatalf("%s: %g, half way between %#04x and %#04x, becomes %#04x", f.name, s*middle, lo, hi, g)
				}
				if g := f.encode(s * below); g != sign|lo {
					t.Fatalf("%s: %g becomes %#04x, not %#04x", f.name, s*below, g, sign|lo)
				}
				if g := f.encode(s * above); g != sign|hi {
					t.Fatalf("%s: %g becomes %#04x, not %#04x", f.name, s*above, g, sign|hi)
				}
			}
		}
	}
}

// Beyond the largest number, the middle to the next power of two is the first
// that becomes infinite.
func TestHalfOverflow(t *testing.T) {
	for _, f := range formats {
		largest := f.value(f.infinity() - 1)
		step := largest - f.value(f.infinity()-2)
		limit := float32(largest + step/2)
		for s, sign := range map[float32]uint16{1: 0, -1: 0x8000} {
			require.Equal(t, sign|f.infinity(), f.encode(s*limit), f.name)
			require.Equal(t, sign|(f.infinity()-1), f.encode(s*math.Nextafter32(limit, 0)), f.name)
			require.Equal(t, sign|f.infinity(), f.encode(s*math.MaxFloat32), f.name)
			require.Equal(t, sign|f.infinity(), f.encode(s*float32(math.Inf(1))), f.name)
		}
	}
}

// Any float32 goes to a neighbour that no other value is nearer to.
func FuzzHalfNearest(fz *testing.F) {
	for _, v := range []float32{0, 1, -1, 65504, 65520, 1e-8, 3.4e38, 5.9e-8, 6.1e-5} {
		fz.Add(math.Float32bits(v))
	}
	fz.Fuzz(func(t *testing.T, bits uint32) {
		v := math.Float32frombits(bits)
		for _, f := range formats {
			got := f.encode(v)
			if v != v {
				require.True(t, math.IsNaN(f.value(got)))
				continue
			}
			require.Equal(t, math.Signbit(float64(v)), got&0x8000 != 0)
			if mag := got & 0x7fff; mag < f.infinity() {
				dist := math.Abs(f.value(got) - float64(v))
				require.False(t, mag > 0 && math.Abs(f.value(got-1)-float64(v)) < dist, "%s: %g", f.name, v)
				require.False(t, mag+1 < f.infinity() && math.Abs(f.value(got+1)-float64(v)) < dist, "%s: %g", f.name, v)
			}
		}
	})
}
