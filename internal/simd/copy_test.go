package simd

import (
	"bytes"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// escaped makes the compiler put what address is taken of on the heap.
var escaped any

// address is that of the first element. s must be on the heap, because a stack
// moves, and the caller keeps it alive by using it afterwards.
func address[T any](s []T) uintptr {
	p := unsafe.SliceData(s)
	escaped = p
	return uintptr(unsafe.Pointer(p))
}

// TestCopy moves ranges onto themselves by every kind of overlap, across pieces.
func TestCopy(t *testing.T) {
	copies := map[string]func(dst, src uintptr, bytes int){"Copy": Copy, "CopyNT": CopyNT}
	for name, do := range copies {
		eachLevel(t, func(t *testing.T) {
			for _, n := range []int{-1, 0, 1, 63, 64, 65, piece - 1, piece, piece + 1, 5*piece + 77} {
				for _, shift := range []int{0, 1, 64, 4097, piece, 3 * piece, 6 * piece} {
					copyCase(t, name, do, n, shift, 0)
					copyCase(t, name, do, n, 0, shift)
					copyCase(t, name, do, n, shift+3, 5)
				}
			}
		})
	}
}

func copyCase(t *testing.T, name string, do func(dst, src uintptr, bytes int), n, to, from int) {
	mem := make([]byte, max(to, from)+max(n, 0)+64)
	for i := range mem {
		mem[i] = byte(i*7 + i>>8)
	}
	want := bytes.Clone(mem)
	if n > 0 {
		copy(want[to:to+n], want[from:from+n])
	}
	do(address(mem)+uintptr(to), address(mem)+uintptr(from), n)
	require.True(t, bytes.Equal(want, mem), "%s of %d bytes from %d to %d", name, n, from, to)
}

// TestLevel: the best level is the one in use, and plain Go is always there.
func TestLevel(t *testing.T) {
	all := levels()
	require.Equal(t, all[0].name, Level())
	require.Equal(t, "generic", all[len(all)-1].name)
	t.Logf("level %s", Level())
}
