// The interpreter's kernels: one for each protocol and reduction, and the fused forms.
// All of a kind are in one line here; package comm/exec/gpu chooses.

#include "interp/fused.h"
#include "interp/interp.h"
#include "grid.h"

#define INTERP(name, protocol, reduction) \
	KERNEL(InterpMaxThreads) name(const __grid_constant__ InterpArgs a) { interp<protocol, reduction>(a); }

INTERP(interp_ll_copy, LL, Copy)
INTERP(interp_ll_sum_f32, LL, SumF32)
INTERP(interp_ll_sum_bf16, LL, SumBF16)
INTERP(interp_simple_copy, Simple, Copy)
INTERP(interp_simple_sum_f32, Simple, SumF32)
INTERP(interp_simple_sum_bf16, Simple, SumBF16)

#define FUSED(name, reduction, gather) \
	KERNEL(InterpMaxThreads) name(const __grid_constant__ InterpFused a) { fused<reduction, gather>(a); }

FUSED(fused_ll_gather, Copy, true)
FUSED(fused_ll_sum_f32, SumF32, false)
FUSED(fused_ll_sum_bf16, SumBF16, false)
