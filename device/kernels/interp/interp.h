// The interpreter: one block for each channel of a Program, which steps its lanes
// through their instructions.
#pragma once

#include "interp/ll.h"
#include "interp/simple.h"

// steps runs a lane to its end.
template <class P, class R> DEV void steps(const Block &b, const Team &t, Machine &m) {
#pragma unroll 1
	while (m.pc < m.walk(b).end) {
		switch (b.op(m.pc)) {
		case InterpOpMove: P::template move<R>(b, t, m); break;
		case InterpOpSignal: signal(b, t, m); break;
		case InterpOpWait: wait(b, t, m); break;
		case InterpOpPostL: post_lane(b, t, m); break;
		case InterpOpWaitL: wait_lane(b, t, m); break;
		case InterpOpLoop: m.open(b, t); break;
		case InterpOpRep: m.repeat(b, t, m.eval(b, b.instr(m.pc).chunk)); break;
		default: m.next(b, t); break;
		}
	}
}

// keep advances the channel's state, so that the next launch, also of a captured
// graph, goes on where this one ends. After an abort it stays as it was.
DEV void keep(const Block &b) {
	if (b.died()) return;
	u64 state = (u64)b.a.state + (u64)channel() * b.a.state_bytes;
#pragma unroll 1
	for (u32 i = thread(); i < b.counted(); i += threads()) {
		u32 at = b.state_of(i), lanes = b.part().lanes;
		V16 v = {b.word(at), b.word(at + 1)};
#pragma unroll 1
		for (u32 l = 0; l < lanes; l++) { // at most one lane has used it
			Count c = b.count(first_warp(lanes, l), i);
			if ((i64)(c.done - v.lo) > 0) v.lo = c.done;
			if ((i64)(c.seen - v.hi) > 0) v.hi = c.seen;
		}
		st128(state + 8 * at, v);
	}
	if (thread() == 0 && (b.head().flags & InterpUsesScratch)) st64(state, b.epoch() + 1);
}

template <class P, class R> DEV void interp(const InterpArgs &a) {
	Block b = {a, shared()};
	b.load();
	block_sync();
	if (b.version() != InterpVersion) {
		fault(b, InterpFaultImage);
		return;
	}
	Team t = team_of(b.part().lanes);
	b.begin(t.own());
	Machine m;
	m.begin(b, t);
	steps<P, R>(b, t, m);
	block_sync();
	keep(b);
}
