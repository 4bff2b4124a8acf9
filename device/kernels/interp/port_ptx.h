// The interpreter's machine on a GPU, sm_70 and later.
#pragma once

#define DEV __device__ __forceinline__
#define SELDOM __device__ __noinline__ // a call is cheaper than its code in many places

enum : u32 {
	Warp = 32,
	AbortSpins = 1024, // turns of a wait between two looks at the abort word
};

DEV u32 thread() { return threadIdx.x; }
DEV u32 threads() { return blockDim.x; }
DEV u32 channel() { return blockIdx.x; }

// shared is where the block's shared memory is, as a number of its own address space.
// The compiler would find it anew at every use, by a slow instruction, if it knew what
// it is; in_shared tells it the space.
typedef u32 Shared;
DEV Shared shared() {
	extern __shared__ V16 interp_shared[];
	u32 p = (u32)__cvta_generic_to_shared(interp_shared);
	asm volatile("" : "+r"(p));
	return p;
}
DEV char *in_shared(Shared p) { return reinterpret_cast<char *>(__cvta_shared_to_generic(p)); }

DEV void block_sync() { __syncthreads(); }
// block_all is a block_sync in which all threads vote.
DEV bool block_all(bool b) { return __syncthreads_and(b) != 0; }
DEV void warp_sync() { __syncwarp(); }
// warp_all is also a warp_sync, which a vote alone is not.
DEV bool warp_all(bool b) {
	bool all = __all_sync(0xffffffffu, b);
	__syncwarp();
	return all;
}

// group_sync is a barrier of n threads, of which no other group uses the id. The
// instruction wants the threads of a warp together.
DEV void group_sync(u32 id, u32 n) {
	__syncwarp();
	asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(n) : "memory");
}

// fence_system orders what this thread wrote, and what it has seen of others through
// barriers, before its later stores, for all threads of all devices.
DEV void fence_system() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }

// fence_block orders within the block what barriers do not: shared counters of lanes.
DEV void fence_block() { asm volatile("fence.acq_rel.cta;" ::: "memory"); }

// turn is called in every turn of a wait.
DEV void turn() {}

DEV u32 shared_add(u32 *p, u32 v) { return atomicAdd(p, v); }

// Bulk loads are volatile: strong, and not from a first-level cache, which does not
// see what peers write.
DEV V16 ld128(u64 p) {
	V16 v;
	asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];" : "=l"(v.lo), "=l"(v.hi) : "l"(p));
	return v;
}
DEV u64 ld64(u64 p) {
	u64 v;
	asm volatile("ld.volatile.global.u64 %0, [%1];" : "=l"(v) : "l"(p));
	return v;
}
DEV u64 ld32(u64 p) {
	u32 v;
	asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(v) : "l"(p));
	return v;
}
DEV u64 ld16(u64 p) {
	u16 v;
	asm volatile("ld.volatile.global.u16 %0, [%1];" : "=h"(v) : "l"(p));
	return v;
}
DEV u64 ld8(u64 p) {
	u32 v;
	asm volatile("ld.volatile.global.u8 %0, [%1];" : "=r"(v) : "l"(p));
	return v;
}
DEV void st128(u64 p, V16 v) { asm volatile("st.global.v2.u64 [%0], {%1, %2};" ::"l"(p), "l"(v.lo), "l"(v.hi)); }
DEV void st64(u64 p, u64 v) { asm volatile("st.global.u64 [%0], %1;" ::"l"(p), "l"(v)); }
DEV void st32(u64 p, u64 v) { asm volatile("st.global.u32 [%0], %1;" ::"l"(p), "r"((u32)v)); }
DEV void st16(u64 p, u64 v) { asm volatile("st.global.u16 [%0], %1;" ::"l"(p), "h"((u16)v)); }
DEV void st8(u64 p, u64 v) { asm volatile("st.global.u8 [%0], %1;" ::"l"(p), "r"((u32)v & 0xff)); }

// acquire64 loads a word that a peer posts; what the peer wrote before its fence is
// seen by later loads of this thread.
DEV u64 acquire64(u64 p) {
	u64 v;
	asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
	return v;
}
DEV void post64(u64 p, u64 v) { asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory"); }
DEV u32 host32(u64 p) {
	u32 v;
	asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
	return v;
}
DEV void post_host32(u64 p, u32 v) { asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory"); }

// line128 writes a line of LL: each of the two words arrives whole, in any order.
DEV void line128(u64 p, V16 v) { asm volatile("st.volatile.global.v2.u64 [%0], {%1, %2};" ::"l"(p), "l"(v.lo), "l"(v.hi) : "memory"); }

// opaque is v, of which the compiler knows nothing: what is computed from it is not
// shared with other paths, where it would only occupy registers.
DEV u32 opaque(u32 v) {
	asm volatile("" : "+r"(v)::"memory");
	return v;
}

DEV float as_float(u32 v) { return __uint_as_float(v); }
DEV u32 as_bits(float v) { return __float_as_uint(v); }

// Arithmetic that the compiler never fuses and never flushes to zero.
DEV float add(float a, float b) { return __fadd_rn(a, b); }
DEV float multiply(float a, float b) { return __fmul_rn(a, b); }
DEV float divide(float a, float b) { return __fdiv_rn(a, b); }

// pack_bf16 rounds two floats, ties to even; every NaN becomes 0x7fc0.
DEV u32 pack_bf16(float lo, float hi) {
#if __CUDA_ARCH__ >= 900
	// The conversion gives NaN as 0x7fff, above every other pattern as a signed number.
	u32 v;
	asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(v) : "f"(hi), "f"(lo));
	asm("min.s16x2 %0, %1, %2;" : "=r"(v) : "r"(v), "r"(0x7fc07fc0));
	return v;
#else
	u32 a = lo != lo ? 0x7fc00000 : as_bits(lo), b = hi != hi ? 0x7fc00000 : as_bits(hi);
	a += 0x7fff + (a >> 16 & 1), b += 0x7fff + (b >> 16 & 1);
	return a >> 16 | (b & 0xffff0000);
#endif
}
