// Kernels that treat each element by itself, float32. Launch: any grid of blocks of
// up to 256 threads; elementwise.go chooses one.

#include "abi/elementwise.h"
#include "grid.h"

// pattern is P(rank, i), a whole number below PatternRange: a multiple of the golden
// ratio's bits scatters the elements, and ranks are apart by an odd step.
static __device__ inline u32 pattern(u32 rank, u64 i) {
	return ((u32)((i + 1) * 0x9e3779b97f4a7c15ull >> 40) + rank * PatternRankStep) % PatternRange;
}

KERNEL(256) fill_pattern_f32(const __grid_constant__ FillArgs a) {
	EACH(i, a.n) a.x[i] = (float)pattern(a.rank, a.first + i);
}

// note adds this thread's mismatches to the result. Sums and minima of whole numbers
// do not depend on the order of threads.
static __device__ inline void note(Mismatches *to, u64 count, u64 first) {
	if (count == 0) return;
	atomicAdd(&to->count, count);
	atomicMin(&to->first, first);
}

KERNEL(256) check_pattern_f32(const __grid_constant__ CheckArgs a) {
	u64 count = 0, first = ~0ull;
	EACH(i, a.n) {
		u32 sum = 0;
		for (u32 r = 0; r < a.ranks; r++) sum += pattern(a.rank + r, a.first + i);
		if (a.x[i] == (float)sum) continue;
		if (count++ == 0) first = i;
	}
	note(a.result, count, first);
}

KERNEL(256) compare_f32(const __grid_constant__ CompareArgs a) {
	u64 count = 0, first = ~0ull;
	EACH(i, a.n) {
		float x = a.x[i], y = a.y[i];
		if (__float_as_uint(x) == __float_as_uint(y)) continue;
		// Infinity would make the tolerance infinite; NaN fails every comparison.
		if (fabsf(y) <= 3.402823466e+38f && fabsf(x - y) <= a.absolute + a.relative * fabsf(y)) continue;
		if (count++ == 0) first = i;
	}
	note(a.result, count, first);
}

KERNEL(256) scale_f32(const __grid_constant__ ScaleArgs a) {
	EACH(i, a.n) a.x[i] *= a.factor;
}

KERNEL(256) axpy_f32(const __grid_constant__ AxpyArgs a) {
	EACH(i, a.n) a.y[i] += a.a * a.x[i];
}

KERNEL(256) sgd_f32(const __grid_constant__ SgdArgs a) {
	EACH(i, a.n) {
		float v = a.momentum * a.velocity[i] + a.grad[i];
		a.velocity[i] = v;
		a.value[i] -= a.rate * v;
	}
}
