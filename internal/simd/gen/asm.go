package main

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	op "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// set is one instruction set: its vector width in bytes, and whether it has
// mask registers, with which a kernel also does the last partial vector.
type set struct {
	name   string
	suffix string
	width  int
	masks  bool
}

func sets() []set {
	return []set{
		{name: "avx2", suffix: "AVX2", width: 32},
		{name: "avx512", suffix: "AVX512", width: 64, masks: true},
	}
}

// asm assembles for one set. Its methods hide the spellings that differ between
// the two encodings.
type asm struct {
	*build.Context
	set
}

func newAsm(s set) *asm {
	a := &asm{Context: build.NewContext(), set: s}
	a.ConstraintExpr("amd64,!noasm,!race") // avo takes the older spelling of constraint
	return a
}

// function begins a kernel. All operands are addresses and byte counts, so the
// Go compiler needs no pointer maps and nothing escapes.
func (a *asm) function(name, signature, doc string) {
	a.Function(name)
	a.Attributes(attr.NOSPLIT)
	a.SignatureExpr(signature)
	a.Doc(doc)
}

func (a *asm) end() {
	a.VZEROUPPER()
	a.RET()
}

func (a *asm) param(name string) reg.GPVirtual {
	r := a.GP64()
	a.Load(a.Param(name), r)
	return r
}

func (a *asm) vec() reg.VecVirtual {
	if a.masks {
		return a.ZMM()
	}
	return a.YMM()
}

// load reads one vector; with a mask, only the bytes it names, the rest zero.
func (a *asm) load(m op.Mem, mask reg.Register) reg.VecVirtual {
	v := a.vec()
	switch {
	case mask != nil:
		a.VMOVDQU8_Z(m, mask, v)
	case a.masks:
		a.VMOVDQU64(m, v)
	default:
		a.VMOVDQU(m, v)
	}
	return v
}

func (a *asm) store(v reg.VecVirtual, m op.Mem, mask reg.Register) {
	switch {
	case mask != nil:
		a.VMOVDQU8(v, mask, m)
	case a.masks:
		a.VMOVDQU64(v, m)
	default:
		a.VMOVDQU(v, m)
	}
}

// The bitwise operations: x = x op y.
func (a *asm) and(x, y reg.VecVirtual) {
	if a.masks {
		a.VPANDD(y, x, x)
	} else {
		a.VPAND(y, x, x)
	}
}

func (a *asm) or(x, y reg.VecVirtual) {
	if a.masks {
		a.VPORD(y, x, x)
	} else {
		a.VPOR(y, x, x)
	}
}

func (a *asm) xor(x, y reg.VecVirtual) {
	if a.masks {
		a.VPXORD(y, x, x)
	} else {
		a.VPXOR(y, x, x)
	}
}

// lanes32 and lanes64 return a vector with every lane equal to c.
func (a *asm) lanes32(c uint32) reg.VecVirtual {
	g, x := a.GP32(), a.XMM()
	a.MOVL(op.U32(c), g)
	a.VMOVD(g, x)
	return a.spread32(x)
}

func (a *asm) lanes64(c uint64) reg.VecVirtual {
	g, x := a.GP64(), a.XMM()
	a.MOVQ(op.U64(c), g)
	a.VMOVQ(g, x)
	return a.spread64(x)
}

func (a *asm) spread32(x reg.VecVirtual) reg.VecVirtual {
	v := a.vec()
	a.VPBROADCASTD(x, v)
	return v
}

func (a *asm) spread64(x reg.VecVirtual) reg.VecVirtual {
	v := a.vec()
	a.VPBROADCASTQ(x, v)
	return v
}

// at is the operand base[index + disp].
func at(base, index reg.Register, disp int) op.Mem {
	return op.Mem{Base: base, Index: index, Scale: 1, Disp: disp}
}
