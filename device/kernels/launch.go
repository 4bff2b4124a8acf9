package kernels

import (
	"fmt"
	"math"

	"github.com/goccl/goccl"
)

// Launch says what to launch and how: one kernel of a module, on a grid and blocks of
// one dimension, without dynamic shared memory. The kernel's only parameter is the
// structure from which the Launch was made.
type Launch struct {
	Module, Kernel  string
	Blocks, Threads uint32
}

// maxBlocks bounds the grid of kernels whose threads take more than one element: it
// fills the largest GPU several times over.
const maxBlocks = 4096

// blockThreads is the block of all kernels here.
const blockThreads = 256

// each is the Launch of a kernel that takes any grid, for n elements.
func each(module, kernel string, n uint64) Launch {
	blocks := min(max(1, (n+blockThreads-1)/blockThreads), maxBlocks)
	return Launch{Module: module, Kernel: kernel, Blocks: uint32(blocks), Threads: blockThreads}
}

// need reports an argument that a kernel must not be given.
func need(kernel string, ok bool, what string) error {
	if ok {
		return nil
	}
	return fmt.Errorf("%w: kernel %s: %s", goccl.ErrInvalid, kernel, what)
}

// finite reports whether f is a number.
func finite(f float32) bool { return math.Abs(float64(f)) <= math.MaxFloat32 }
