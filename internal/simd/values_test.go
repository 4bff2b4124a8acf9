package simd

import (
	"bytes"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"unsafe"

	"github.com/goccl/goccl"
)

// eachLevel runs fn once with every level of this build and processor.
func eachLevel(t *testing.T, fn func(t *testing.T)) {
	for _, l := range levels() {
		t.Run(l.name, func(t *testing.T) {
			force(t, l)
			fn(t)
		})
	}
}

// force makes l the level until the test ends.
func force(t testing.TB, l *level) {
	old := active
	active = l
	t.Cleanup(func() { active = old })
}

// special returns bit patterns of d that break careless arithmetic.
func special(d goccl.DType) []uint64 {
	switch d {
	case goccl.F32:
		return []uint64{0, 1 << 31, 1, 0x80000001, 0x007fffff, 0x00800000, 0x3f800000, 0xbf800000,
			0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345, 0x7f800001, 0xffa00000}
	case goccl.F64:
		return []uint64{0, 1 << 63, 1, 1<<63 | 1, 1 << 52, math.Float64bits(1), math.Float64bits(-1),
			math.Float64bits(math.MaxFloat64), math.Float64bits(math.Inf(1)), math.Float64bits(math.Inf(-1)),
			0x7ff8000000000000, 0xfff8000000000123, 0x7ff0000000000001, 0xfff4000000000000}
	case goccl.F16:
		return []uint64{0, 0x8000, 1, 0x8001, 0x03ff, 0x0400, 0x3c00, 0xbc00, 0x7bff, 0xfbff, 0x7c00, 0xfc00,
			0x7e00, 0xfe12, 0x7c01, 0xfd00}
	case goccl.BF16:
		return []uint64{0, 0x8000, 1, 0x8001, 0x007f, 0x0080, 0x3f80, 0xbf80, 0x7f7f, 0xff7f, 0x7f80, 0xff80,
			0x7fc0, 0xffc1, 0x7f81, 0xffa0}
	}
	top := uint64(1) << (8*d.Size() - 1)
	return []uint64{0, 1, 2, top - 1, top, top + 1, 2*top - 1}
}

// fill writes n elements that differ per element and seed: arbitrary bits,
// numbers near one, and special values.
func fill(d goccl.DType, mem []byte, n int, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, uint64(d)))
	odd := special(d)
	for i := range n {
		v := rng.Uint64()
		switch k := rng.IntN(8); {
		case k == 0:
			v = odd[rng.IntN(len(odd))]
		case k < 5 && d.Float():
			v = moderate(d, rng.NormFloat64()*3)
		}
		store(d, mem, i, v)
	}
}

// moderate returns the bits of a number close to f.
func moderate(d goccl.DType, f float64) uint64 {
	if d == goccl.F64 {
		return math.Float64bits(f)
	}
	return refNarrow(d, float32(f))
}

// arena is memory for the operands of one case, with canaries around each.
// Operands start off elements after a 64-byte boundary.
type arena struct {
	mem  []byte
	base uintptr
	skip int // bytes from the start of mem to the first 64-byte boundary
	slot int // bytes from one operand to the next
	off  int
}

const canary = 0xa5

func newArena(d goccl.DType, operands, n, off int) *arena {
	a := &arena{slot: (n*d.Size()+63)&^63 + 128, off: 64 + off*d.Size()}
	a.mem = make([]byte, operands*a.slot+64)
	for i := range a.mem {
		a.mem[i] = canary
	}
	a.base = uintptr(unsafe.Pointer(unsafe.SliceData(a.mem)))
	a.skip = int(-a.base & 63)
	return a
}

// addr returns the address of operand i, bytes its memory.
func (a *arena) addr(i int) uintptr { return a.base + uintptr(a.skip+i*a.slot+a.off) }

func (a *arena) bytes(i int) []byte { return a.mem[a.skip+i*a.slot+a.off:] }

// same compares operands and canaries with those of b.
func (a *arena) same(b *arena, operands int) bool {
	n := operands * a.slot
	return bytes.Equal(a.mem[a.skip:a.skip+n], b.mem[b.skip:b.skip+n])
}

// keep holds the memory until here: addresses alone do not.
func (a *arena) keep() { runtime.KeepAlive(a.mem) }
