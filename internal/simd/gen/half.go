package main

import (
	op "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// f16 widens with F16C: the low and the high half of a vector become two
// vectors of float32.
type f16 struct{ *float }

func newF16(a *asm, operation string) element { return f16{newFloat(a, operation, false)} }

func (f16) unroll() int { return 2 }

func (h f16) load(m op.Mem, mask reg.Register) value {
	a := h.a
	lo, hi := a.vec(), a.vec()
	if mask == nil {
		a.VCVTPH2PS(m, lo)
		a.VCVTPH2PS(m.Offset(a.width/2), hi)
	} else {
		raw, upper := a.load(m, mask), a.YMM()
		a.VEXTRACTI64X4(op.U8(1), raw, upper)
		a.VCVTPH2PS(raw.AsY(), lo)
		a.VCVTPH2PS(upper, hi)
	}
	h.negate(lo)
	h.negate(hi)
	return value{lo, hi}
}

func (h f16) store(acc value, m op.Mem, mask reg.Register) {
	const nearestEven = op.U8(0)
	a := h.a
	h.finish(acc[0])
	h.finish(acc[1])
	if mask == nil {
		a.VCVTPS2PH(nearestEven, acc[0], m)
		a.VCVTPS2PH(nearestEven, acc[1], m.Offset(a.width/2))
		return
	}
	lo, hi := a.YMM(), a.YMM()
	a.VCVTPS2PH(nearestEven, acc[0], lo)
	a.VCVTPS2PH(nearestEven, acc[1], hi)
	whole := a.ZMM()
	a.VINSERTI64X4(op.U8(1), hi, lo.AsZ(), whole)
	a.store(whole, m, mask)
}

// bf16 splits a vector into its even and odd elements: a bfloat16 is the upper
// half of a float32, so one shift and one mask do it, without a shuffle.
type bf16 struct {
	*float
	upper, one, bias reg.VecVirtual
}

func newBF16(a *asm, operation string) element {
	return bf16{
		float: newFloat(a, operation, false),
		upper: a.lanes32(0xffff0000),
		one:   a.lanes32(1),
		bias:  a.lanes32(0x7fff),
	}
}

func (bf16) unroll() int { return 2 }

func (h bf16) load(m op.Mem, mask reg.Register) value {
	odd, even := h.a.load(m, mask), h.a.vec()
	h.a.VPSLLD(op.U8(16), odd, even)
	h.a.and(odd, h.upper)
	h.negate(even)
	h.negate(odd)
	return value{even, odd}
}

func (h bf16) store(acc value, m op.Mem, mask reg.Register) {
	even, odd := acc[0], acc[1]
	h.round(even)
	h.round(odd)
	h.a.VPSRLD(op.U8(16), even, even)
	h.a.and(odd, h.upper)
	h.a.or(even, odd)
	h.a.store(even, m, mask)
}

// round leaves the nearest bfloat16, ties to even, in the upper half of every
// lane: add 0x7fff and the last bit that stays. The canonical NaN, set before,
// does not overflow by it.
func (h bf16) round(v reg.VecVirtual) {
	h.finish(v)
	t := h.a.vec()
	h.a.VPSRLD(op.U8(16), v, t)
	h.a.and(t, h.one)
	h.a.VPADDD(t, v, v)
	h.a.VPADDD(h.bias, v, v)
}
