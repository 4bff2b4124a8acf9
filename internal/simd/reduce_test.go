package simd

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
)

const mostSources = 5

// TestReduce compares every element type, operation, level, length, number of
// sources, alignment and way of aliasing with the reference, bit for bit, and
// sees that nothing around the result changes.
func TestReduce(t *testing.T) {
	longest := lengths[len(lengths)-1]
	for _, d := range goccl.DTypes() {
		src := make([][]byte, mostSources)
		for i := range src {
			src[i] = make([]byte, longest*d.Size())
			fill(d, src[i], longest, uint64(100+i))
		}
		for _, op := range goccl.ReduceOps()[:operations] {
			for count := 1; count <= mostSources; count++ {
				want := reference(d, op, src[:count])
				eachLevel(t, func(t *testing.T) { reduceCases(t, d, op, src[:count], want) })
			}
		}
	}
}

func reference(d goccl.DType, op goccl.ReduceOp, src [][]byte) []byte {
	if len(src) == 1 {
		return src[0]
	}
	out, row := make([]byte, len(src[0])), make([]uint64, len(src))
	for i := range len(out) / d.Size() {
		for k := range src {
			row[k] = load(d, src[k], i)
		}
		store(d, out, i, refReduce(d, op, row))
	}
	return out
}

func reduceCases(t *testing.T, d goccl.DType, op goccl.ReduceOp, src [][]byte, want []byte) {
	for _, n := range lengths {
		for off := range 2 {
			for alias := -1; alias < len(src); alias++ { // which source is the result
				if n > 1000 && alias > 0 && alias < len(src)-1 {
					continue
				}
				reduceCase(t, d, op, src, want, n, off, alias)
			}
		}
	}
}

func reduceCase(t *testing.T, d goccl.DType, op goccl.ReduceOp, src [][]byte, want []byte, n, off, alias int) {
	a := newArena(d, len(src)+1, n, off)
	defer a.keep()
	addr := make([]uintptr, len(src))
	for i := range src {
		copy(a.bytes(i), src[i][:n*d.Size()])
		addr[i] = a.addr(i)
	}
	dst := len(src)
	if alias >= 0 {
		dst = alias
	}
	expect := newArena(d, len(src)+1, n, off)
	for i := range src {
		copy(expect.bytes(i), src[i][:n*d.Size()])
	}
	copy(expect.bytes(dst), want[:n*d.Size()])

	Reduce(d, op, a.addr(dst), addr, n)

	if !a.same(expect, len(src)+1) {
		for i := range n {
			got, should := load(d, a.bytes(dst), i), load(d, expect.bytes(dst), i)
			row := make([]uint64, len(src))
			for k := range src {
				row[k] = load(d, src[k], i)
			}
			require.Equal(t, fmt.Sprintf("%#x", should), fmt.Sprintf("%#x", got),
				"%s %s n=%d off=%d sources=%d result in %d: element %d of row %#x", d, op, n, off, len(src), alias, i, row)
		}
		require.Fail(t, "memory outside the result changed", "%s %s n=%d off=%d sources=%d result in %d", d, op, n, off, len(src), alias)
	}
}

// TestReduceLong crosses piece boundaries with two and with many sources.
func TestReduceLong(t *testing.T) {
	const n = piece + 4096 + 5
	src := make([][]byte, 12)
	for i := range src {
		src[i] = make([]byte, 2*n)
		fill(goccl.BF16, src[i], n, uint64(i))
	}
	for _, count := range []int{2, 3, 12} {
		want := reference(goccl.BF16, goccl.Sum, src[:count])
		eachLevel(t, func(t *testing.T) {
			reduceCase(t, goccl.BF16, goccl.Sum, src[:count], want, n, 1, -1)
			reduceCase(t, goccl.BF16, goccl.Sum, src[:count], want, n, 0, count-1)
		})
	}
}

// TestReduceAvgAdds: the kinds with a scale add, whatever the scale.
func TestReduceAvgAdds(t *testing.T) {
	for _, op := range []goccl.ReduceOp{goccl.Avg, goccl.PreMulSum(0.25)} {
		a, b, out := []int32{1, 2, 3}, []int32{10, 20, 30}, make([]int32, 3)
		Reduce2(goccl.I32, op, address(out), address(a), address(b), 3)
		require.Equal(t, []int32{11, 22, 33}, out)
		Reduce(goccl.I32, op, address(out), []uintptr{address(a), address(b), address(b)}, 3)
		require.Equal(t, []int32{21, 42, 63}, out)
	}
}

// TestNoAllocation holds for tables of sources on the caller's stack too.
func TestNoAllocation(t *testing.T) {
	buf := make([]float32, 1003)
	p := address(buf)
	eachLevel(t, func(t *testing.T) {
		for _, d := range []goccl.DType{goccl.F32, goccl.F16, goccl.I8} {
			require.Zero(t, testing.AllocsPerRun(20, func() {
				Reduce2(d, goccl.Sum, p, p, p, 1003)
				Reduce(d, goccl.Max, p, []uintptr{p, p, p}, 1003)
				Divide(d, p, p, 1003, 3)
				Copy(p, p+8, 1003)
			}), d.String())
		}
		require.Zero(t, testing.AllocsPerRun(20, func() { Scale(goccl.BF16, p, p, 1003, 0.5) }))
	})
}

// FuzzReduce looks for a length, alignment or value on which the levels differ
// from the reference.
func FuzzReduce(f *testing.F) {
	f.Add(uint8(2), uint8(1), uint8(3), uint16(77), uint64(1))
	f.Fuzz(func(t *testing.T, dtype, op, count uint8, n uint16, seed uint64) {
		d := goccl.DTypes()[int(dtype)%len(goccl.DTypes())]
		o := goccl.ReduceOps()[op%uint8(operations)]
		src := make([][]byte, 1+count%9)
		for i := range src {
			src[i] = make([]byte, int(n)*d.Size())
			fill(d, src[i], int(n), seed+uint64(i))
		}
		want := reference(d, o, src)
		eachLevel(t, func(t *testing.T) { reduceCase(t, d, o, src, want, int(n), int(seed%2), int(seed%uint64(len(src)))) })
	})
}
