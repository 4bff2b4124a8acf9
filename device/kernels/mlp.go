package kernels

import (
	"math"

	"github.com/goccl/goccl/device/kernels/abi"
)

const mlp = "mlp"

// Matmul launches C = alpha * op(A) * op(B), op(A) m × k and op(B) k × n. One block
// of 256 threads computes a tile of abi.MatmulTile × abi.MatmulTile elements. The
// error wraps goccl.ErrInvalid for unknown flags and for more tiles than a grid has
// blocks.
func Matmul(a *abi.MatmulArgs) (Launch, error) {
	const kernel = "matmul_f32"
	tiles := tiled(a.M) * tiled(a.N)
	if err := need(kernel, a.Flags&^(abi.MatmulTransposeA|abi.MatmulTransposeB) == 0, "unknown flags"); err != nil {
		return Launch{}, err
	}
	if err := need(kernel, tiles <= math.MaxInt32, "more than 2^31-1 tiles"); err != nil {
		return Launch{}, err
	}
	// An empty product still gets a block: a grid of none cannot be launched.
	return Launch{Module: mlp, Kernel: kernel, Blocks: uint32(max(1, tiles)), Threads: blockThreads}, nil
}

func tiled(n uint32) uint64 { return (uint64(n) + uint64(abi.MatmulTile) - 1) / uint64(abi.MatmulTile) }

// Bias launches x[r][c] += bias[c] and, with a knee above 0, the activation
//
//	f(z) = 0 for z <= 0, z²/(2·knee) for 0 < z < knee, z - knee/2 above.
//
// The error wraps goccl.ErrInvalid for a knee below 0 or not finite.
func Bias(a *abi.BiasArgs) (Launch, error) {
	const kernel = "bias_f32"
	err := need(kernel, a.Knee >= 0 && finite(a.Knee), "the knee must be 0, for no activation, or above")
	return each(mlp, kernel, uint64(a.Rows)*uint64(a.Cols)), err
}

// SmoothReLUGrad launches the way back through the activation of Bias: grad, the gradient
// of its outputs out, becomes that of its inputs. The error wraps goccl.ErrInvalid
// for a knee that is not above 0.
func SmoothReLUGrad(a *abi.ReluGradArgs) (Launch, error) {
	const kernel = "smooth_relu_grad_f32"
	return each(mlp, kernel, a.N), need(kernel, a.Knee > 0 && finite(a.Knee), "the knee must be above 0")
}

// SumRows launches sum[c] = the sum of x[r][c] over rows in order: the gradient of a
// bias.
func SumRows(a *abi.SumRowsArgs) Launch { return each(mlp, "sum_rows_f32", uint64(a.Cols)) }

// SoftmaxXent launches the softmax cross-entropy of each row against its label: losses
// and gradient of their mean. XentSum adds the losses up. The error wraps
// goccl.ErrInvalid without classes or with a batch of 0.
func SoftmaxXent(a *abi.XentArgs) (Launch, error) {
	const kernel = "softmax_xent_f32"
	blocks := (uint64(a.Rows) + uint64(abi.XentWarps) - 1) / uint64(abi.XentWarps)
	l := Launch{Module: mlp, Kernel: kernel, Blocks: uint32(min(max(1, blocks), maxBlocks)), Threads: 32 * abi.XentWarps}
	return l, need(kernel, a.Classes > 0 && a.Batch > 0, "there must be classes and a batch")
}

// XentSum launches the sum of rows that SoftmaxXent wrote, in one block.
func XentSum(a *abi.XentSumArgs) Launch {
	return Launch{Module: mlp, Kernel: "xent_sum", Blocks: 1, Threads: blockThreads}
}
