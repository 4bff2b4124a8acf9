// A lane: its threads, and the machine that steps through its instructions. Every
// thread has a machine of its own; all of a lane are in the same state at the same
// instruction. It is the machine of package plan/machine: the same geometry, the same
// two loops.
#pragma once

#include "interp/block.h"

// Team is the threads of a lane, a share of the warps of the block.
struct Team {
	u32 lane;  // of the channel
	u32 first; // its first warp in the block
	u32 warps;

	DEV u32 own() const { return ::thread() / Warp; } // this warp in the block
	DEV u32 warp() const { return own() - first; }
	DEV u32 thread() const { return ::thread() - first * Warp; }
	DEV u32 threads() const { return warps * Warp; }
	DEV u32 rank() const { return ::thread() % Warp; } // in the warp
	DEV void sync() const { group_sync(lane + 1, threads()); }
};

// first_warp is the first warp of a lane: the warps are divided among the lanes, the
// first ones getting one more.
DEV u32 first_warp(u32 lanes, u32 lane) {
	u32 warps = ::threads() / Warp, extra = warps % lanes;
	return lane * (warps / lanes) + (lane < extra ? lane : extra);
}

DEV Team team_of(u32 lanes) {
	if (lanes == 1) return {0, 0, ::threads() / Warp};
	u32 own = ::thread() / Warp, lane = 0;
#pragma unroll 1
	while (lane + 1 < lanes && own >= first_warp(lanes, lane + 1)) lane++;
	u32 first = first_warp(lanes, lane);
	return {lane, first, first_warp(lanes, lane + 1) - first};
}

// Divisions are calls: they are long, and most are by powers of two.
SELDOM u64 divided(u64 a, u32 by) { return a / by; }
SELDOM i32 modulo(i32 v, i32 m) {
	v %= m;
	return v < 0 ? v + m : v;
}

// Machine is where a lane stands. What changes seldom is in shared memory, once for
// each warp, so that moves have the registers.
struct Machine {
	u32 pc, j;
	bool dead; // this thread has given up

	static DEV Walk &walk(const Block &b) { return b.walk(thread() / Warp); }

	DEV void begin(const Block &b, const Team &t) {
		pc = b.part().lo[t.lane], j = 0, dead = false;
		u64 ch = channel(), extra = b.a.call.extra, grain = b.head().grain;
		u64 lo = (ch * b.a.call.per + (ch < extra ? ch : extra)) * grain, hi = lo + (b.a.call.per + (ch < extra)) * grain;
		if (lo > b.a.call.unit) lo = b.a.call.unit;
		if (hi > b.a.call.unit) hi = b.a.call.unit;
		if (t.rank() == 0) {
			Walk &w = walk(b);
			w.lo = lo, w.n = hi - lo, w.end = b.part().hi[t.lane], w.reps = 0;
			enter(b, w, 0);
		}
		warp_sync();
	}

	static DEV u64 span(const Block &b) { return (u64)b.head().d * b.head().chunk; }

	// enter makes the iteration at offset at the current one.
	static DEV void enter(const Block &b, Walk &w, u64 at) {
		const InterpHead &h = b.head();
		u64 full = span(b), rest = w.n - at < full ? w.n - at : full;
		w.start = at;
		w.rest = rest;
		w.chunk = h.chunk;
		if (rest == full) return;
		// The last iteration is spread evenly over its chunks, in whole grains.
		u64 even = h.d_shift < 32 ? (rest + h.d - 1) >> h.d_shift : divided(rest + h.d - 1, h.d);
		even = round_up(h, even);
		if (even < h.chunk) w.chunk = (u32)even;
	}

	static DEV u64 round_up(const InterpHead &h, u64 v) {
		v += h.grain - 1;
		return h.grain_shift < 32 ? v >> h.grain_shift << h.grain_shift : divided(v, h.grain) * h.grain;
	}

	// next goes past an END.
	DEV void next(const Block &b, const Team &t) {
		Walk &w = walk(b);
		u32 reps = w.reps;
		if (reps > 0 && ++j < reps) {
			pc = w.rep;
			return;
		}
		u64 at = w.start + span(b);
		bool again = reps == 0 && at < w.n;
		pc = again ? w.loop : pc + 1;
		j = 0;
		warp_sync(); // all have read
		if (t.rank() == 0) {
			w.reps = 0;
			if (again) enter(b, w, at);
		}
		warp_sync();
	}

	// open enters a LOOP.
	DEV void open(const Block &b, const Team &t) {
		pc++;
		if (t.rank() == 0) walk(b).loop = pc;
		warp_sync();
	}

	// repeat enters a REP of m turns, or skips it.
	DEV void repeat(const Block &b, const Team &t, i32 m) {
		pc++;
		if (m <= 0) {
#pragma unroll 1
			while (b.op(pc) != InterpOpEnd) pc++;
			pc++;
			return;
		}
		if (t.rank() == 0) walk(b).rep = pc, walk(b).reps = (u32)m;
		warp_sync();
	}

	DEV i32 eval(const Block &b, u32 e) const {
		InterpExpr x = b.fetch<InterpExpr>(b.head().exprs + 16 * e);
		i32 v = x.a + x.b * (i32)j;
		if (x.p >= 0) v += b.part().p[x.p];
		if (x.m > 0 && (u32)v >= (u32)x.m) { // most are out of range by one turn
			v = v < 0 ? v + x.m : v - x.m;
			if ((u32)v >= (u32)x.m) v = modulo(v, x.m);
		}
		if (x.t > 0) v = (i32)b.at<u32>(b.head().tables + 4 * (x.t - 1 + (u32)v));
		return v;
	}

	// before is the bytes of the iteration in front of chunk v.
	static DEV u64 before(const Walk &w, i32 v) {
		u64 at = (u64)(u32)v * w.chunk;
		return at < w.rest ? at : w.rest;
	}

	// offset is where chunk (or block) v begins in its buffer.
	static DEV u64 offset(const Block &b, i32 v) {
		const Walk &w = walk(b);
		return w.lo + w.start + (b.head().per_rank ? (u64)(u32)v * b.a.call.unit : before(w, v));
	}

	// length is the bytes of the chunk that expression e picks.
	DEV u32 length(const Block &b, u32 e) const {
		const Walk &w = walk(b);
		u64 left = w.rest - before(w, b.head().per_rank ? 0 : eval(b, e));
		return left < w.chunk ? (u32)left : w.chunk;
	}

	// slice cuts slice s out of a chunk: its offset, and its length in *bytes.
	static DEV u32 slice(const Block &b, u32 length, u32 s, u32 *bytes) {
		u32 slices = b.head().slices;
		if (slices == 1) {
			*bytes = length;
			return 0;
		}
		u64 per = round_up(b.head(), divided((u64)length + slices - 1, slices)), at = per * s;
		if (at > length) at = length;
		*bytes = length - at < per ? length - (u32)at : (u32)per;
		return (u32)at;
	}
};
