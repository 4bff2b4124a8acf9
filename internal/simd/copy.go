package simd

// streamMin is the size from which CopyNT writes around the caches: below it the
// copy is over before the caches would fill.
const streamMin = 256 << 10

// Copy copies bytes from src to dst, which may overlap, as memmove does.
func Copy(dst, src uintptr, bytes int) {
	if bytes <= 0 || dst == src {
		return
	}
	n := uintptr(bytes)
	if dst-src < n { // dst lies inside src: the last piece first
		for n > piece {
			n -= piece
			callCopy(dst+n, src+n, piece)
		}
		callCopy(dst, src, n)
		return
	}
	for offset := uintptr(0); offset < n; offset += piece {
		callCopy(dst+offset, src+offset, min(piece, n-offset))
	}
}

// CopyNT copies bytes from src to dst with non-temporal stores: for a large
// destination that is not read soon, it saves reading it into the caches first.
// Small or overlapping ranges are copied as by Copy. The stores are ordered
// before any later store of the caller.
func CopyNT(dst, src uintptr, bytes int) {
	n := uintptr(max(bytes, 0))
	if active.stream == nil || n < streamMin || dst-src < n || src-dst < n {
		Copy(dst, src, bytes)
		return
	}
	const line = 64
	if head := -dst & (line - 1); head > 0 {
		Copy(dst, src, int(head))
		dst, src, n = dst+head, src+head, n-head
	}
	whole := n &^ (line - 1)
	for offset := uintptr(0); offset < whole; offset += piece {
		callStream(active.stream, dst+offset, src+offset, min(piece, whole-offset))
	}
	Copy(dst+whole, src+whole, int(n-whole))
}

// callCopy and callStream are safe points; see callPair.
//
//go:noinline
func callCopy(dst, src, bytes uintptr) {
	copy(at[byte](dst, int(bytes)), at[byte](src, int(bytes)))
}

//go:noinline
func callStream(f func(dst, src, bytes uintptr), dst, src, bytes uintptr) { f(dst, src, bytes) }
