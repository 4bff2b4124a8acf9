// Kernels of a multilayer perceptron, float32. Matrices are row-major and dense.
// Every sum has one order, whatever the launch, so that equal inputs give equal bits.
// mlp.go has the grid of each kernel.

#include "abi/mlp.h"
#include "grid.h"

// matmul_f32: one block of 256 threads for each MatmulTile x MatmulTile tile of C,
// tiles counted along rows. Thread (ty, tx) of 16 x 16 computes the 4 x 4 elements of
// the tile whose coordinates are ty and tx modulo 16. Slabs of 16 columns of op(A) and
// rows of op(B) pass through shared memory; outside the matrices they are zero.

enum { TILE = MatmulTile, SLAB = 16, SIDE = 16, EDGE = TILE / SIDE };

// load fills slab[kk][r] with element (r0 + r, k0 + kk) of a matrix of rows x k that is
// stored k x rows when transposed. Neighbouring threads read neighbouring memory.
static __device__ inline void load(float (*slab)[TILE + 1], const float *x, u32 rows, u32 k, u32 r0, u32 k0, bool transposed) {
	for (u32 e = threadIdx.x; e < TILE * SLAB; e += SIDE * SIDE) {
		u32 r = transposed ? e % TILE : e / SLAB;
		u32 kk = transposed ? e / TILE : e % SLAB;
		bool inside = r0 + r < rows && k0 + kk < k;
		u64 at = transposed ? (u64)(k0 + kk) * rows + r0 + r : (u64)(r0 + r) * k + k0 + kk;
		slab[kk][r] = inside ? x[at] : 0.0f;
	}
}

KERNEL(256) matmul_f32(const __grid_constant__ MatmulArgs a) {
	__shared__ float as[SLAB][TILE + 1];
	__shared__ float bs[SLAB][TILE + 1];
	u32 across = a.n / TILE + (a.n % TILE != 0);
	if (across == 0) return; // the one block of an empty product
	u32 row0 = blockIdx.x / across * TILE, col0 = blockIdx.x % across * TILE;
	u32 ty = threadIdx.x / SIDE, tx = threadIdx.x % SIDE;
	float sum[EDGE][EDGE] = {};
	for (u32 k0 = 0; k0 < a.k; k0 += SLAB) {
		load(as, a.a, a.m, a.k, row0, k0, a.flags & MatmulTransposeA);
		load(bs, a.b, a.n, a.k, col0, k0, !(a.flags & MatmulTransposeB));
		__syncthreads();
#pragma unroll 4
		for (u32 kk = 0; kk < SLAB; kk++) {
			float x[EDGE], y[EDGE];
#pragma unroll
			for (u32 i = 0; i < EDGE; i++) x[i] = as[kk][ty + i * SIDE], y[i] = bs[kk][tx + i * SIDE];
#pragma unroll
			for (u32 i = 0; i < EDGE; i++)
#pragma unroll
				for (u32 j = 0; j < EDGE; j++) sum[i][j] = fmaf(x[i], y[j], sum[i][j]);
		}
		__syncthreads();
	}
#pragma unroll
	for (u32 i = 0; i < EDGE; i++)
#pragma unroll
		for (u32 j = 0; j < EDGE; j++) {
			u32 r = row0 + ty + i * SIDE, c = col0 + tx + j * SIDE;
			if (r < a.m && c < a.n) a.c[(u64)r * a.n + c] = a.alpha * sum[i][j];
		}
}

// bias_f32: any grid of blocks of up to 256 threads.
KERNEL(256) bias_f32(const __grid_constant__ BiasArgs a) {
	EACH(i, (u64)a.rows * a.cols) {
		float z = a.x[i] + a.bias[i % a.cols];
		if (a.knee > 0) {
			if (z <= 0)
				z = 0;
			else if (z < a.knee)
				z = z * z * (1 / (2 * a.knee));
			else
				z = z - a.knee / 2;
		}
		a.x[i] = z;
	}
}

// smooth_relu_grad_f32: any grid of blocks of up to 256 threads. Between 0 and the
// knee the slope at z is z/knee, and z = sqrt(2*knee*out).
KERNEL(256) smooth_relu_grad_f32(const __grid_constant__ ReluGradArgs a) {
	EACH(i, a.n) {
		float y = a.out[i];
		if (y <= 0)
			a.grad[i] = 0;
		else if (y < a.knee / 2)
			a.grad[i] *= sqrtf(y * (2 / a.knee));
	}
}

// sum_rows_f32: any grid of blocks of up to 256 threads, one thread a column.
KERNEL(256) sum_rows_f32(const __grid_constant__ SumRowsArgs a) {
	EACH(c, a.cols) {
		float sum = 0;
		for (u32 r = 0; r < a.rows; r++) sum += a.x[(u64)r * a.cols + c];
		a.sum[c] = sum;
	}
}

// softmax_xent_f32: blocks of XentWarps warps, one warp a row, any grid. Exponentials
// are taken relative to the largest logit, so that none overflows.
KERNEL(XentWarps * 32) softmax_xent_f32(const __grid_constant__ XentArgs a) {
	u32 lane = threadIdx.x % 32;
	for (u64 r = (u64)blockIdx.x * XentWarps + threadIdx.x / 32; r < a.rows; r += (u64)gridDim.x * XentWarps) {
		const float *x = a.logits + r * a.classes;
		float *grad = a.grad + r * a.classes;
		u32 label = a.labels[r];
		bool valid = label < a.classes;
		float most = -__int_as_float(0x7f800000), own = valid ? x[label] : __int_as_float(0x7fffffff);
		u32 best = ~0u;
		for (u32 j = lane; j < a.classes; j += 32)
			if (best == ~0u || x[j] > most) most = x[j], best = j;
		for (u32 d = 16; d > 0; d /= 2) {
			float m = __shfl_xor_sync(~0u, most, d);
			u32 b = __shfl_xor_sync(~0u, best, d);
			if (m > most || (m == most && b < best)) most = m, best = b;
		}
		// With a NaN among the logits the lanes need not agree yet.
		most = __shfl_sync(~0u, most, 0);
		best = __shfl_sync(~0u, best, 0);
		double sum = 0;
		for (u32 j = lane; j < a.classes; j += 32) sum += exp((double)x[j] - most);
		for (u32 d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
		for (u32 j = lane; j < a.classes; j += 32) {
			float g = (float)((double)(float)exp((double)x[j] - most) / sum / a.batch);
			if (j == label) g -= (float)(1.0 / a.batch);
			grad[j] = valid ? g : own;
		}
		if (lane == 0) a.row[r] = XentRow{log(sum) - ((double)own - most), best, valid && best == label};
	}
}

// xent_sum: one block of 256 threads.
KERNEL(256) xent_sum(const __grid_constant__ XentSumArgs a) {
	__shared__ double loss[256];
	__shared__ u64 correct[256];
	double l = 0;
	u64 c = 0;
	for (u32 r = threadIdx.x; r < a.rows; r += 256) l += a.row[r].loss, c += a.row[r].correct;
	loss[threadIdx.x] = l;
	correct[threadIdx.x] = c;
	for (u32 d = 128; d > 0; d /= 2) {
		__syncthreads();
		if (threadIdx.x < d) loss[threadIdx.x] += loss[threadIdx.x + d], correct[threadIdx.x] += correct[threadIdx.x + d];
	}
	if (threadIdx.x == 0) *a.sum = XentSum{loss[0], correct[0]};
}
