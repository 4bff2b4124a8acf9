package main

import (
	"fmt"

	op "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// value is what one vector of memory becomes in registers: one vector, or two
// when halves are widened to float32.
type value []reg.VecVirtual

// element is the arithmetic of one function: the element type and operation are
// fixed, and its constants are already in registers.
type element interface {
	load(m op.Mem, mask reg.Register) value
	combine(acc, x value) // acc = acc op x
	store(acc value, m op.Mem, mask reg.Register)
	unroll() int // vectors of memory in one turn of the main loop
}

// eachBlock assembles the loops over the bytes [index, index+left): unrolled,
// then vector by vector, then the masked rest where the set has masks. body
// handles n vectors from index on.
func (a *asm) eachBlock(index, left reg.GPVirtual, unroll int, body func(n int, mask reg.Register)) {
	for _, n := range []int{unroll, 1} {
		loop, done := fmt.Sprintf("loop%d", n), fmt.Sprintf("done%d", n)
		step := n * a.width
		a.Label(loop)
		a.CMPQ(left, op.U32(step))
		a.JB(op.LabelRef(done))
		body(n, nil)
		a.ADDQ(op.U32(step), index)
		a.SUBQ(op.U32(step), left)
		a.JMP(op.LabelRef(loop))
		a.Label(done)
	}
	if a.masks {
		a.TESTQ(left, left)
		a.JZ(op.LabelRef("end"))
		bits, mask := a.GP64(), a.K()
		a.MOVQ(op.I64(-1), bits)
		a.BZHIQ(left, bits, bits)
		a.KMOVQ(bits, mask)
		body(1, mask)
		a.Label("end")
	}
}

// pair is dst = a op b.
func (a *asm) pair(name string, begin func() element) {
	a.function(name, "func(dst, a, b, bytes uintptr)", "dst = a op b over bytes.")
	dst, x, y, left := a.param("dst"), a.param("a"), a.param("b"), a.param("bytes")
	index := a.GP64()
	a.XORQ(index, index)
	e := begin()
	a.eachBlock(index, left, e.unroll(), func(n int, mask reg.Register) {
		acc := make([]value, n)
		for i := range acc {
			acc[i] = e.load(at(x, index, i*a.width), mask)
		}
		for i := range acc {
			e.combine(acc[i], e.load(at(y, index, i*a.width), mask))
		}
		for i := range acc {
			e.store(acc[i], at(dst, index, i*a.width), mask)
		}
	})
	a.end()
}

// rows is dst = src[0] op src[1] op ... op src[count-1], count >= 2. Each block
// is accumulated in registers, so every byte is read once and stored once, and
// dst may be any of the sources.
func (a *asm) rows(name string, begin func() element) {
	a.function(name, "func(dst uintptr, src *uintptr, count, offset, bytes uintptr)",
		"dst = src[0] op ... op src[count-1] over bytes from offset on.")
	dst, src, count := a.param("dst"), a.param("src"), a.param("count")
	index, left := a.param("offset"), a.param("bytes")
	e := begin()
	blocks := 0
	a.eachBlock(index, left, e.unroll(), func(n int, mask reg.Register) {
		blocks++
		next := fmt.Sprintf("source%d", blocks)
		base, k := a.GP64(), a.GP64()
		a.MOVQ(op.Mem{Base: src}, base)
		acc := make([]value, n)
		for i := range acc {
			acc[i] = e.load(at(base, index, i*a.width), mask)
		}
		a.MOVQ(op.U32(1), k)
		a.Label(next)
		a.MOVQ(op.Mem{Base: src, Index: k, Scale: 8}, base)
		for i := range acc {
			e.combine(acc[i], e.load(at(base, index, i*a.width), mask))
		}
		a.INCQ(k)
		a.CMPQ(k, count)
		a.JB(op.LabelRef(next))
		for i := range acc {
			e.store(acc[i], at(dst, index, i*a.width), mask)
		}
	})
	a.end()
}

// scale is dst = src op factor, the factor given by its bits in the type that
// the arithmetic runs in.
func (a *asm) scale(name string, wide bool, begin func() element) {
	a.function(name, "func(dst, src, bytes uintptr, factor uint64)", "dst = src op factor over bytes.")
	dst, src, left, bits := a.param("dst"), a.param("src"), a.param("bytes"), a.param("factor")
	index, x := a.GP64(), a.XMM()
	a.XORQ(index, index)
	a.VMOVQ(bits, x)
	var factor reg.VecVirtual
	if wide {
		factor = a.spread64(x)
	} else {
		factor = a.spread32(x)
	}
	e := begin()
	a.eachBlock(index, left, e.unroll(), func(n int, mask reg.Register) {
		acc := make([]value, n)
		for i := range acc {
			acc[i] = e.load(at(src, index, i*a.width), mask)
			f := make(value, len(acc[i]))
			for j := range f {
				f[j] = factor
			}
			e.combine(acc[i], f)
		}
		for i := range acc {
			e.store(acc[i], at(dst, index, i*a.width), mask)
		}
	})
	a.end()
}
