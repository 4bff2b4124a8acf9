package main

import (
	"fmt"

	op "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// emitCopy assembles the copy that writes around the caches. dst is aligned to
// 64 bytes and the bytes are a multiple of 64, so that whole lines leave the
// write-combining buffers; the fence orders them before later stores.
func emitCopy(a *asm) {
	a.function("copyStream"+a.suffix, "func(dst, src, bytes uintptr)",
		"copies bytes, a multiple of 64, to dst, aligned to 64, with non-temporal stores.")
	dst, src, left := a.param("dst"), a.param("src"), a.param("bytes")
	const line = 64
	for _, step := range []int{4 * line, line} {
		loop, done := fmt.Sprintf("loop%d", step), fmt.Sprintf("done%d", step)
		a.Label(loop)
		a.CMPQ(left, op.U32(step))
		a.JB(op.LabelRef(done))
		var v []reg.VecVirtual
		for o := 0; o < step; o += a.width {
			v = append(v, a.load(op.Mem{Base: src, Disp: o}, nil))
		}
		for i, x := range v {
			a.VMOVNTDQ(x, op.Mem{Base: dst, Disp: i * a.width})
		}
		a.ADDQ(op.U32(step), src)
		a.ADDQ(op.U32(step), dst)
		a.SUBQ(op.U32(step), left)
		a.JMP(op.LabelRef(loop))
		a.Label(done)
	}
	a.SFENCE()
	a.end()
}
