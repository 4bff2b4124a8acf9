package bucket

import (
	"runtime"

	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/internal/shmem"
	"github.com/goccl/goccl/internal/simd"
)

// copyHost copies src to dst, both of the same number of bytes, in host memory.
func copyHost(dst, src device.Buffer) {
	simd.Copy(dst.Addr, src.Addr, src.Bytes())
	runtime.KeepAlive(dst.Owner)
	runtime.KeepAlive(src.Owner)
}

// zeroHost fills b with zeros.
func zeroHost(b device.Buffer) {
	clear(shmem.At(b.Addr, b.Bytes()).Bytes())
	runtime.KeepAlive(b.Owner)
}

// heapBuffer returns zeroed memory of n elements of the type of k, aligned to 8
// bytes.
func heapBuffer(n int, k key) device.Buffer {
	words := make([]uint64, max(1, (n*k.dtype.Size()+7)/8))
	b := device.SliceOf(words)
	return device.FromPointer(b.Addr, n, k.dtype, k.device, b.Owner)
}
