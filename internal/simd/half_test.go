package simd

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
)

// TestHalvesKeepEveryValue adds +0 to all 65536 patterns: each comes back, but
// for -0 (-0 + 0 = +0) and the NaNs, which become the canonical one.
func TestHalvesKeepEveryValue(t *testing.T) {
	const n = 1 << 16
	all, zero := make([]uint16, n), make([]uint16, n)
	for i := range all {
		all[i] = uint16(i)
	}
	for d, half := range map[goccl.DType]struct{ infinity, nan uint16 }{
		goccl.F16:  {0x7c00, 0x7e00},
		goccl.BF16: {0x7f80, 0x7fc0},
	} {
		want := make([]uint16, n)
		for i := range want {
			switch {
			case uint16(i)&0x7fff > half.infinity:
				want[i] = half.nan
			case i != 0x8000:
				want[i] = uint16(i)
			}
		}
		eachLevel(t, func(t *testing.T) {
			got := make([]uint16, n)
			Reduce2(d, goccl.Sum, address(got), address(all), address(zero), n)
			requireHalves(t, want, got, d.String())
			clear(got)
			Reduce(d, goccl.Sum, address(got), []uintptr{address(zero), address(all), address(zero)}, n)
			requireHalves(t, want, got, d.String())
		})
	}
}

// requireHalves names the first pattern that differs: index i holds the result
// for pattern i.
func requireHalves(t *testing.T, want, got []uint16, what string) {
	t.Helper()
	for i := range want {
		if got[i] != want[i] {
			require.Failf(t, "wrong bits", "%s: pattern %#04x gives %#04x, not %#04x", what, i, got[i], want[i])
		}
	}
}

// TestHalvesRoundToNearestEven multiplies every pattern by factors whose
// products fall on and beside ties, overflow and the subnormals.
func TestHalvesRoundToNearestEven(t *testing.T) {
	const n = 1 << 16
	all := make([]uint16, n)
	for i := range all {
		all[i] = uint16(i)
	}
	for _, d := range []goccl.DType{goccl.F16, goccl.BF16} {
		for _, f := range []float32{0.5, 1.5, 0.75, 1.0 / 1024, 3.0 / 4096, 1.00390625, 1.0009765625, 0x1p-20, 0x1p-126, 3e30} {
			factor := make([]uint16, n)
			for i := range factor {
				factor[i] = uint16(refNarrow(d, f))
			}
			want := make([]uint16, n)
			for i := range want {
				want[i] = uint16(refReduce(d, goccl.Prod, []uint64{uint64(all[i]), uint64(factor[i])}))
			}
			eachLevel(t, func(t *testing.T) {
				got := make([]uint16, n)
				Reduce2(d, goccl.Prod, address(got), address(all), address(factor), n)
				requireHalves(t, want, got, fmt.Sprintf("%s * %g", d, f))
			})
		}
	}
}

// TestC67HalvesRoundOncePerRow: 256 ones and small values are summed in float32;
// a bf16 accumulator would stop at 256 and lose every small value.
func TestC67HalvesRoundOncePerRow(t *testing.T) {
	one, small := uint16(0x3f80), uint16(0x3b80) // 1 and 2^-8
	src := make([]uintptr, 0, 512)
	ones, smalls := make([]uint16, 37), make([]uint16, 37)
	for i := range ones {
		ones[i], smalls[i] = one, small
	}
	for range 256 {
		src = append(src, address(ones), address(smalls))
	}
	eachLevel(t, func(t *testing.T) {
		got := make([]uint16, 37)
		Reduce(goccl.BF16, goccl.Sum, address(got), src, len(got))
		for _, g := range got { // 256 + 256/256 = 257, a tie between 256 and 258: even mantissa
			require.Equal(t, uint16(refNarrow(goccl.BF16, 257)), g)
		}
		smaller := src[:2*200]
		Reduce(goccl.BF16, goccl.Sum, address(got), smaller, len(got))
		require.Equal(t, uint16(refNarrow(goccl.BF16, 200+200.0/256)), got[0]) // 201, not 200
	})
}

// TestReferenceRounding pins the reference itself to values known by hand.
func TestReferenceRounding(t *testing.T) {
	for _, c := range []struct {
		d    goccl.DType
		f    float32
		want uint64
	}{
		{goccl.F16, 1, 0x3c00}, {goccl.F16, 65504, 0x7bff}, {goccl.F16, 65519.996, 0x7bff}, {goccl.F16, 65520, 0x7c00},
		{goccl.F16, 2049, 0x6800}, {goccl.F16, 2051, 0x6802}, {goccl.F16, 0x1p-24, 1}, {goccl.F16, 0x1p-25, 0},
		{goccl.F16, 0x1.8p-25, 1}, {goccl.F16, 0x1.8p-24, 2}, {goccl.F16, -0x1p-14, 0x8400}, {goccl.F16, 1e-40, 0},
		{goccl.BF16, 1, 0x3f80}, {goccl.BF16, 257, 0x4380}, {goccl.BF16, 259, 0x4382}, {goccl.BF16, 3.4e38, 0x7f80},
		{goccl.BF16, 0x1p-133, 1}, {goccl.BF16, 0x1p-134, 0}, {goccl.BF16, -1e-45, 0x8000},
	} {
		require.Equal(t, c.want, refNarrow(c.d, c.f), "%s of %g", c.d, c.f)
	}
}
