//go:build amd64 && !noasm && !race

package simd

import "golang.org/x/sys/cpu"

// levels lists what this processor can run, best first.
func levels() []*level {
	var l []*level
	avx2 := cpu.X86.HasAVX2 && cpu.X86.HasF16C
	avx512 := avx2 && cpu.X86.HasBMI2 && cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW &&
		cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL
	if avx512 {
		l = append(l, &avx512Level)
	}
	if avx2 {
		l = append(l, &avx2Level)
	}
	return append(l, &genericLevel)
}
