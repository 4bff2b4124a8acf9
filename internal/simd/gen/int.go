package main

import (
	op "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// integer is the arithmetic in integer lanes. Sum and Prod are the same for
// both signs.
type integer struct {
	a                 *asm
	operation         string
	bits              int
	signed            bool
	flip              reg.VecVirtual // sign bits, for an unsigned order by signed comparison
	lowByte, highByte reg.VecVirtual // of every 16-bit lane
}

func newInteger(a *asm, operation string, bits int, signed bool) element {
	e := &integer{a: a, operation: operation, bits: bits, signed: signed}
	if e.compares() && !signed {
		e.flip = a.lanes64(sign64)
	}
	if bits == 8 && operation == prod {
		e.lowByte, e.highByte = a.lanes32(0x00ff00ff), a.lanes32(0xff00ff00)
	}
	return e
}

// compares reports whether the order is taken by comparing and blending: AVX2
// has no 64-bit minimum, and its comparison is signed.
func (e *integer) compares() bool {
	return e.bits == 64 && !e.a.masks && (e.operation == minimum || e.operation == maximum)
}

func (e *integer) unroll() int { return 4 }

func (e *integer) load(m op.Mem, mask reg.Register) value {
	v := e.a.load(m, mask)
	if e.flip != nil {
		e.a.xor(v, e.flip)
	}
	return value{v}
}

func (e *integer) store(acc value, m op.Mem, mask reg.Register) {
	if e.flip != nil {
		e.a.xor(acc[0], e.flip)
	}
	e.a.store(acc[0], m, mask)
}

func (e *integer) combine(acc, x value) {
	v, w := acc[0], x[0]
	switch e.operation {
	case sum:
		e.sum(v, w)
	case prod:
		e.prod(v, w)
	default:
		e.order(v, w)
	}
}

func (e *integer) sum(v, w reg.VecVirtual) {
	switch e.bits {
	case 8:
		e.a.VPADDB(w, v, v)
	case 32:
		e.a.VPADDD(w, v, v)
	default:
		e.a.VPADDQ(w, v, v)
	}
}

func (e *integer) prod(v, w reg.VecVirtual) {
	a := e.a
	switch {
	case e.bits == 32:
		a.VPMULLD(w, v, v)
	case e.bits == 8: // even bytes by a 16-bit product, odd ones by (v>>8) * (w & 0xff00)
		t, u := a.vec(), a.vec()
		a.VPSRLW(op.U8(8), v, t)
		a.VPMULLW(w, v, v)
		a.and(v, e.lowByte)
		e.copy(w, u)
		a.and(u, e.highByte)
		a.VPMULLW(u, t, t)
		a.or(v, t)
	case a.masks:
		a.VPMULLQ(w, v, v)
	default: // lo*lo + ((hi*lo + lo*hi) << 32)
		t, u := a.vec(), a.vec()
		a.VPSRLQ(op.U8(32), v, t)
		a.VPMULUDQ(w, t, t)
		a.VPSRLQ(op.U8(32), w, u)
		a.VPMULUDQ(v, u, u)
		a.VPADDQ(u, t, t)
		a.VPSLLQ(op.U8(32), t, t)
		a.VPMULUDQ(w, v, v)
		a.VPADDQ(t, v, v)
	}
}

func (e *integer) copy(from, to reg.VecVirtual) {
	if e.a.masks {
		e.a.VMOVDQA64(from, to)
	} else {
		e.a.VMOVDQA(from, to)
	}
}

// order is Min or Max.
func (e *integer) order(v, w reg.VecVirtual) {
	if e.compares() {
		m := e.a.vec()
		if e.operation == minimum {
			e.a.VPCMPGTQ(w, v, m) // v > w: take w
		} else {
			e.a.VPCMPGTQ(v, w, m) // w > v: take w
		}
		e.a.VBLENDVPD(m, w, v, v)
		return
	}
	type form struct {
		operation string
		bits      int
		signed    bool
	}
	emit := map[form]func(...op.Op){
		{minimum, 8, true}: e.a.VPMINSB, {minimum, 8, false}: e.a.VPMINUB,
		{maximum, 8, true}: e.a.VPMAXSB, {maximum, 8, false}: e.a.VPMAXUB,
		{minimum, 32, true}: e.a.VPMINSD, {minimum, 32, false}: e.a.VPMINUD,
		{maximum, 32, true}: e.a.VPMAXSD, {maximum, 32, false}: e.a.VPMAXUD,
		{minimum, 64, true}: e.a.VPMINSQ, {minimum, 64, false}: e.a.VPMINUQ,
		{maximum, 64, true}: e.a.VPMAXSQ, {maximum, 64, false}: e.a.VPMAXUQ,
	}[form{e.operation, e.bits, e.signed}]
	emit(w, v, v)
}
