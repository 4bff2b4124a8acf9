package main

import (
	op "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The operations on floats. Max is Min of the negated values, negated: that
// needs no comparison and orders -0 below +0.
const (
	sum     = "Sum"
	prod    = "Prod"
	minimum = "Min"
	maximum = "Max"
	mul     = "Mul"
	div     = "Div"
)

const (
	nan32, sign32 = 0x7fc00000, 0x80000000
	nan64, sign64 = 0x7ff8000000000000, 0x8000000000000000
	unordered     = op.U8(3) // predicate of VCMPPS and VCMPPD: either is NaN
)

// float is the arithmetic in float32 or float64 lanes. Halves embed it.
type float struct {
	a         *asm
	operation string
	wide      bool
	nan, sign reg.VecVirtual
}

func newFloat(a *asm, operation string, wide bool) *float {
	f := &float{a: a, operation: operation, wide: wide}
	if wide {
		f.nan = a.lanes64(nan64)
	} else {
		f.nan = a.lanes32(nan32)
	}
	if operation == maximum {
		if wide {
			f.sign = a.lanes64(sign64)
		} else {
			f.sign = a.lanes32(sign32)
		}
	}
	return f
}

func (f *float) unroll() int { return 4 }

func (f *float) load(m op.Mem, mask reg.Register) value {
	v := f.a.load(m, mask)
	f.negate(v)
	return value{v}
}

func (f *float) store(acc value, m op.Mem, mask reg.Register) {
	f.finish(acc[0])
	f.a.store(acc[0], m, mask)
}

// negate is the change of sign on the way in and out of a Max.
func (f *float) negate(v reg.VecVirtual) {
	if f.operation == maximum {
		f.a.xor(v, f.sign)
	}
}

// finish makes a result ready: sign restored, every NaN the canonical one.
func (f *float) finish(v reg.VecVirtual) {
	f.negate(v)
	if f.a.masks {
		k := f.a.K()
		if f.wide {
			f.a.VCMPPD(unordered, v, v, k)
			f.a.VMOVAPD(f.nan, k, v)
		} else {
			f.a.VCMPPS(unordered, v, v, k)
			f.a.VMOVAPS(f.nan, k, v)
		}
		return
	}
	m := f.a.vec()
	if f.wide {
		f.a.VCMPPD(unordered, v, v, m)
		f.a.VBLENDVPD(m, f.nan, v, v)
	} else {
		f.a.VCMPPS(unordered, v, v, m)
		f.a.VBLENDVPS(m, f.nan, v, v)
	}
}

func (f *float) combine(acc, x value) {
	for i := range acc {
		if f.operation == minimum || f.operation == maximum {
			f.min(acc[i], x[i])
		} else {
			f.arithmetic(acc[i], x[i])
		}
	}
}

func (f *float) arithmetic(acc, x reg.VecVirtual) {
	switch {
	case f.operation == sum && f.wide:
		f.a.VADDPD(x, acc, acc)
	case f.operation == sum:
		f.a.VADDPS(x, acc, acc)
	case f.operation == div && f.wide:
		f.a.VDIVPD(x, acc, acc)
	case f.operation == div:
		f.a.VDIVPS(x, acc, acc)
	case f.wide:
		f.a.VMULPD(x, acc, acc)
	default:
		f.a.VMULPS(x, acc, acc)
	}
}

// min ORs the minimum taken in both orders. The instruction returns its second
// operand when one is NaN or both are zero: between the two orders each operand
// shows up once, a NaN stays a NaN under OR, and of two zeros -0 wins.
func (f *float) min(acc, x reg.VecVirtual) {
	t := f.a.vec()
	if f.wide {
		f.a.VMINPD(acc, x, t)
		f.a.VMINPD(x, acc, acc)
	} else {
		f.a.VMINPS(acc, x, t)
		f.a.VMINPS(x, acc, acc)
	}
	f.a.or(acc, t)
}
