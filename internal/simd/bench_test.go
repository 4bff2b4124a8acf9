package simd

import (
	"fmt"
	"testing"

	"github.com/goccl/goccl"
)

// The bytes of a benchmark are those of the result; a reduction of k sources
// moves k+1 times as many.

func BenchmarkReduce2(b *testing.B) {
	for _, d := range []goccl.DType{goccl.F32, goccl.F16, goccl.BF16, goccl.I8, goccl.I64} {
		for _, op := range []goccl.ReduceOp{goccl.Sum, goccl.Max} {
			eachSize(b, fmt.Sprintf("%s/%s", d, op), func(dst, src uintptr, bytes int) {
				Reduce2(d, op, dst, dst, src, bytes/d.Size())
			})
		}
	}
}

func BenchmarkReduce4(b *testing.B) {
	for _, d := range []goccl.DType{goccl.F32, goccl.BF16} {
		eachSize(b, d.String(), func(dst, src uintptr, bytes int) {
			Reduce(d, goccl.Sum, dst, []uintptr{dst, src, src, src}, bytes/d.Size())
		})
	}
}

func BenchmarkDivide(b *testing.B) {
	for _, div := range []int{4, 3} {
		eachSize(b, fmt.Sprintf("f32/%d", div), func(dst, _ uintptr, bytes int) {
			Divide(goccl.F32, dst, dst, bytes/4, div)
		})
	}
}

func BenchmarkCopy(b *testing.B)   { eachSize(b, "bytes", Copy) }
func BenchmarkCopyNT(b *testing.B) { eachSize(b, "bytes", CopyNT) }

// BenchmarkPlainLoop is what a user would write.
func BenchmarkPlainLoop(b *testing.B) {
	eachSize(b, "f32/sum", func(dst, src uintptr, bytes int) {
		x, y := at[float32](dst, bytes/4), at[float32](src, bytes/4)
		for i := range x {
			x[i] += y[i]
		}
	})
}

func eachSize(b *testing.B, name string, call func(dst, src uintptr, bytes int)) {
	for _, l := range levels() {
		for _, bytes := range []int{64, 64 << 10, 64 << 20} {
			b.Run(fmt.Sprintf("%s/%s/%d", name, l.name, bytes), func(b *testing.B) {
				force(b, l)
				mem := make([]byte, 2*bytes+64)
				p := address(mem)
				p += -p & 63
				b.SetBytes(int64(bytes))
				for b.Loop() {
					call(p, p+uintptr(bytes), bytes)
				}
			})
		}
	}
}
