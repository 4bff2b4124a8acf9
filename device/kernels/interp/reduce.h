// Reductions. Their bits are those of the host's kernels: operands are combined left
// to right; halves are accumulated in float32 and rounded once; every NaN that is
// computed is the positive quiet one without payload; what has one source only keeps
// its bits.
//
// The last step of an average is a product where the number of ranks is a power of two,
// whose reciprocal is exact, and else a division.
//
// A reduction works on words of 64 bits, which hold a whole number of elements. So
// one definition serves vectors, LL lines and single elements.
#pragma once

#include "interp/port.h"

DEV float canonical(float v) { return v != v ? as_float(0x7fc00000) : v; }

SELDOM float quotient(float v, float n) { return canonical(divide(v, n)); }

DEV u64 join(u32 lo, u32 hi) { return lo | (u64)hi << 32; }

// Copy reduces nothing: all moves have one source. Elements are bytes to it.
struct Copy {
	enum : bool { reduces = false };
	enum : u32 { esize = 1 };
	struct Acc { u64 w; };
	static DEV Acc widen(u64 w) { return {w}; }
	static DEV u64 raw(const Acc &a) { return a.w; }
	static DEV void add(Acc &, u64) {}
	static DEV u64 narrow(const Acc &a) { return a.w; }
	static DEV u64 scale(u64 w, float) { return w; }
	static DEV u64 divide(u64 w, float) { return w; }
};

struct SumF32 {
	enum : bool { reduces = true };
	enum : u32 { esize = 4 };
	struct Acc { float lo, hi; };
	static DEV Acc widen(u64 w) { return {as_float((u32)w), as_float((u32)(w >> 32))}; }
	static DEV u64 raw(const Acc &a) { return join(as_bits(a.lo), as_bits(a.hi)); } // of one operand
	static DEV void add(Acc &a, u64 w) {
		a.lo = ::add(a.lo, as_float((u32)w));
		a.hi = ::add(a.hi, as_float((u32)(w >> 32)));
	}
	static DEV u64 narrow(const Acc &a) { return join(as_bits(canonical(a.lo)), as_bits(canonical(a.hi))); }
	static DEV u64 scale(u64 w, float f) {
		Acc a = widen(w);
		return narrow({multiply(a.lo, f), multiply(a.hi, f)});
	}
	static DEV u64 divide(u64 w, float n) {
		Acc a = widen(w);
		return join(as_bits(quotient(a.lo, n)), as_bits(quotient(a.hi, n)));
	}
};

struct SumBF16 {
	enum : bool { reduces = true };
	enum : u32 { esize = 2 };
	struct Acc { float x[4]; };
	// A bfloat16 is the upper half of a float32.
	static DEV Acc widen(u64 w) {
		u32 lo = (u32)w, hi = (u32)(w >> 32);
		return {{as_float(lo << 16), as_float(lo & 0xffff0000), as_float(hi << 16), as_float(hi & 0xffff0000)}};
	}
	static DEV u64 raw(const Acc &a) {
		return join(as_bits(a.x[0]) >> 16 | as_bits(a.x[1]), as_bits(a.x[2]) >> 16 | as_bits(a.x[3]));
	}
	static DEV void add(Acc &a, u64 w) {
		Acc b = widen(w);
#pragma unroll
		for (int i = 0; i < 4; i++) a.x[i] = ::add(a.x[i], b.x[i]);
	}
	static DEV u64 narrow(const Acc &a) { return join(pack_bf16(a.x[0], a.x[1]), pack_bf16(a.x[2], a.x[3])); }
	static DEV u64 scale(u64 w, float f) {
		Acc a = widen(w);
#pragma unroll
		for (int i = 0; i < 4; i++) a.x[i] = multiply(a.x[i], f);
		return narrow(a);
	}
	static DEV u64 divide(u64 w, float n) {
		Acc a = widen(w);
#pragma unroll
		for (int i = 0; i < 4; i++) a.x[i] = quotient(a.x[i], n);
		return narrow(a);
	}
};
