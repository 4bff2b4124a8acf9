// How kernels are declared and where a thread stands. Grids and blocks have one
// dimension.
#pragma once

#include "abi/types.h"

// KERNEL(threads) begins a kernel that is launched with at most so many threads a
// block. It takes one structure, which lies in constant memory. One block a
// multiprocessor is asked for: without a number the assembler may rather spill than
// let fewer blocks run.
#define KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads, 1)

// EACH(i, n) runs over this thread's share of [0, n): every gridDim.x * blockDim.x-th
// element, so that neighbours in a warp read neighbours in memory. Any grid covers
// any n.
#define EACH(i, n) \
	for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += (u64)gridDim.x * blockDim.x)
