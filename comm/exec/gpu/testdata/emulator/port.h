// The interpreter's machine in the emulator. What each function promises is in
// interp/port.h and interp/port_ptx.h; how it is kept, or rather how little more is
// kept, is in machine.h.
#pragma once

#include <cstring>

#include "emulator/machine.h"

#define DEV inline
#define SELDOM inline
#define __global__
#define __grid_constant__
#define __launch_bounds__(...)

// Small warps: all that is done for each warp is done with few threads.
enum : u32 { Warp = emulator::Warp, AbortSpins = 16 };

using emulator::self;

DEV u32 thread() { return self->index; }
DEV u32 threads() { return self->block->threads; }
DEV u32 channel() { return self->block->index; }
typedef char *Shared;
DEV Shared shared() { return self->block->shared.data(); }
DEV char *in_shared(Shared p) { return p; }

DEV void block_sync() { emulator::meet(self->block->all, threads()); }
DEV void warp_sync() { emulator::meet(self->block->warps[thread() / Warp], Warp); }
DEV bool block_all(bool b) { return emulator::vote(self->block->all, threads(), b); }
DEV bool warp_all(bool b) { return emulator::vote(self->block->warps[thread() / Warp], Warp, b); }
DEV void group_sync(u32 id, u32 n) { emulator::meet(self->block->groups[id], n); }
DEV void fence_system() { emulator::fence(); }
DEV void fence_block() {}
DEV void turn() { emulator::yield(); }
DEV u32 shared_add(u32 *p, u32 v) {
	u32 old = *p;
	*p += v;
	return old;
}

DEV u64 ld64(u64 p) { return emulator::load(p, 8); }
DEV u64 ld32(u64 p) { return emulator::load(p, 4); }
DEV u64 ld16(u64 p) { return emulator::load(p, 2); }
DEV u64 ld8(u64 p) { return emulator::load(p, 1); }
DEV V16 ld128(u64 p) {
	emulator::aligned(p, 16);
	u64 lo = ld64(p); // in two: no path needs more
	return {lo, ld64(p + 8)};
}
DEV void st64(u64 p, u64 v) { emulator::store(p, v, 8); }
DEV void st32(u64 p, u64 v) { emulator::store(p, v, 4); }
DEV void st16(u64 p, u64 v) { emulator::store(p, v, 2); }
DEV void st8(u64 p, u64 v) { emulator::store(p, v, 1); }
DEV void st128(u64 p, V16 v) {
	emulator::aligned(p, 16);
	st64(p, v.lo);
	st64(p + 8, v.hi);
}
DEV u64 acquire64(u64 p) { return ld64(p); }
DEV void post64(u64 p, u64 v) { emulator::post(p, v, 8); }
DEV u32 host32(u64 p) { return (u32)ld32(p); }
DEV void post_host32(u64 p, u32 v) { emulator::post(p, v, 4); }
DEV void line128(u64 p, V16 v) {
	emulator::aligned(p, 16);
	if (emulator::chance(2)) {
		emulator::post(p, v.lo, 8);
		emulator::post(p + 8, v.hi, 8);
	} else {
		emulator::post(p + 8, v.hi, 8);
		emulator::post(p, v.lo, 8);
	}
}

DEV u32 opaque(u32 v) { return v; }
DEV float as_float(u32 v) {
	float f;
	std::memcpy(&f, &v, 4);
	return f;
}
DEV u32 as_bits(float f) {
	u32 v;
	std::memcpy(&v, &f, 4);
	return v;
}
DEV float add(float a, float b) { return a + b; }
DEV float multiply(float a, float b) { return a * b; }
DEV float divide(float a, float b) { return a / b; }
DEV u32 pack_bf16(float lo, float hi) {
	u32 a = lo != lo ? 0x7fc00000 : as_bits(lo), b = hi != hi ? 0x7fc00000 : as_bits(hi);
	a += 0x7fff + (a >> 16 & 1), b += 0x7fff + (b >> 16 & 1);
	return a >> 16 | (b & 0xffff0000);
}
