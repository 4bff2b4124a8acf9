// Waiting, and posting what others wait for.
#pragma once

#include "interp/lane.h"

// aborted looks at the host's word in every AbortSpins-th turn of a wait.
DEV bool aborted(const Block &b, u32 turns) {
	if (turns % AbortSpins != 0) return false;
	if (host32((u64)&b.a.status->abort) == 0) return false;
	b.die();
	return true;
}

// fault tells the host why this thread gives up.
DEV void fault(const Block &b, u32 why) {
	b.die();
	post_host32((u64)&b.a.status->fault, why);
}

// until waits for the word at p to be want or later, and puts what it was into *now.
// false: aborted.
DEV bool until(const Block &b, u64 p, u64 want, u64 *now) {
#pragma unroll 1
	for (u32 turns = 1;; turns++) {
		*now = acquire64(p);
		if ((i64)(*now - want) >= 0) return true;
		if (aborted(b, turns)) return false;
		turn();
	}
}

// reached waits until the other end of connector c has done want steps. What was seen
// earlier is remembered, also from one launch to the next: a sender that is far ahead
// costs one look for several steps.
DEV bool reached(const Block &b, const Team &t, u32 c, u64 want) {
	Count &count = b.count(t.own(), c);
	u64 now;
	if ((i64)(count.seen - want) >= 0) return true;
	if (!until(b, b.conn(c).watch, want, &now)) return false;
	count.seen = now;
	return true;
}

// step is how many steps this warp has done on connector c.
DEV u64 step(const Block &b, const Team &t, u32 c) { return b.count(t.own(), c).done; }

// slot is where step s of a connector goes.
DEV u64 slot(const Block &b, u32 c, u64 s) {
	return b.conn(c).slots + (u64)((u32)s & b.head().slot_mask) * b.head().slot_bytes;
}

// free_slot waits until the slot of step s toward a peer can be written.
DEV u64 slots_of(const Block &b) { return (u64)b.head().slot_mask + 1; }
DEV bool free_slot(const Block &b, const Team &t, u32 c, u64 s) { return s < slots_of(b) || reached(b, t, c, s + 1 - slots_of(b)); }

// block_of is what rank's region has for this channel and the rank whose number is
// from.
DEV u64 block_of(const Block &b, u32 rank, u32 from) {
	u32 others = b.head().ranks - 1, place = from < rank ? from : from - 1;
	return b.base(rank) + ((u64)channel() * others + place) * b.head().block;
}

DEV u32 bank(const Block &b) { return (u32)b.epoch() % InterpBanks; }

// scratch is slot number from of rank's scratch, in the current bank; scratch_flag is
// the word in which Simple says that it is full.
DEV u64 scratch(const Block &b, u32 rank, u32 from) {
	return block_of(b, rank, from) + b.head().scratch + bank(b) * b.head().scratch_bytes;
}
DEV u64 scratch_flag(const Block &b, u32 rank, u32 from) {
	return block_of(b, rank, from) + b.head().scratch_flag + bank(b) * InterpWord;
}

// win is where peer's input (0) or output (1) lies, once it has told.
DEV u64 &win(const Block &b, u32 peer, u32 out) { return b.at<u64>(b.a.wins + 16 * peer + 8 * out); }

// where is the address of an operand at the given offset in its chunk: the current
// slot of a FIFO or of scratch, or the user's memory. It waits for nothing.
DEV u64 where(const Block &b, const Team &t, const Machine &m, const InterpOpnd &o, u32 off) {
	if (o.kind == InterpKindFifoRecv || o.kind == InterpKindFifoSend) return slot(b, o.conn, step(b, t, o.conn));
	bool any = o.kind == InterpKindPeerScratch || o.kind == InterpKindPeerIn || o.kind == InterpKindPeerOut;
	u32 rank = any ? (u32)m.eval(b, o.peer) : b.head().rank;
	bool in_scratch = o.kind == InterpKindScratch || o.kind == InterpKindPeerScratch;
	i32 v = m.eval(b, in_scratch ? o.slot : o.chunk);
	if (in_scratch) return scratch(b, rank, (u32)v);
	u64 at = m.offset(b, v) + off;
	if (any) return win(b, rank, o.kind == InterpKindPeerOut) + at;
	return (u64)(o.kind == InterpKindIn ? b.a.call.in : b.a.call.out) + at;
}

// operand reads source or destination q of an instruction, sources first.
DEV InterpOpnd operand(const Block &b, const InterpInstr &in, u32 q) {
	u32 i = q < in.nsrc ? in.src + q : in.dst + q - in.nsrc;
	return b.fetch<InterpOpnd>(b.head().opnds + 16 * i);
}

// run is the number of instructions like the one at pc that follow each other: the
// lanes of a warp do them together.
DEV u32 run(const Block &b, const Machine &m, InterpOp op) {
	u32 n = 1, end = m.walk(b).end;
#pragma unroll 1
	while (n < Warp && m.pc + n < end && b.op(m.pc + n) == op) n++;
	return n;
}

// signal runs SIGNALs. The last warp of the team posts. Moves by Simple, the only ones
// that write what a signal announces, end in a barrier that this warp has passed.
DEV void signal(const Block &b, const Team &t, Machine &m) {
	u32 n = run(b, m, InterpOpSignal);
	if (t.rank() < n) {
		InterpInstr in = b.instr(m.pc + t.rank());
		const InterpSig &s = b.sig(in.word);
		Count &count = b.count(t.own(), b.part().conns + in.word);
		count.done += in.delta;
		if (t.warp() == t.warps - 1 && !b.died()) {
			if ((b.head().flags & InterpUsesWindow) && s.number == 0) {
				st64(s.call, b.a.call.in_place);
				st64(s.call + 8, b.a.call.out_place);
			}
			fence_system();
			post64(s.word, count.done);
		}
	}
	warp_sync();
	m.pc += n;
}

// resolve turns a place that a peer told into an address.
DEV bool resolve(const Block &b, u32 peer, u64 place, u64 *addr) {
	u64 window = place >> InterpPlaceOffset, off = place & ((1ull << InterpPlaceOffset) - 1);
	u64 total = b.a.call.unit * (b.head().per_rank ? b.head().ranks : 1);
	if (window >= b.a.n_windows) return false;
	u64 entry = (u64)b.a.windows + window * 8 * (1 + b.head().ranks);
	u64 bytes = ld64(entry);
	if (off > bytes || bytes - off < total) return false;
	*addr = ld64(entry + 8 * (1 + peer)) + off;
	return true;
}

// wait runs WAITs. The first meeting of a window operation also learns where the
// peers' buffers are.
DEV void wait(const Block &b, const Team &t, Machine &m) {
	u32 n = run(b, m, InterpOpWait);
	bool ok = true, windows = (b.head().flags & InterpUsesWindow) != 0;
	if (t.rank() < n) {
		InterpInstr in = b.instr(m.pc + t.rank());
		const InterpSig &s = b.sig(in.word);
		Count &count = b.count(t.own(), b.part().conns + in.word);
		count.done += in.delta;
		u64 now;
		ok = m.dead || until(b, s.word, count.done, &now);
		if (ok && !m.dead && windows && s.number == 0 && t.warp() == 0) {
			u64 in_addr = 0, out_addr = 0;
			if (resolve(b, s.peer, ld64(s.call), &in_addr) && resolve(b, s.peer, ld64(s.call + 8), &out_addr)) {
				win(b, s.peer, 0) = in_addr, win(b, s.peer, 1) = out_addr;
			} else {
				fault(b, InterpFaultPlace);
				ok = false;
			}
		}
	}
	if (!warp_all(ok)) m.dead = true;
	if (windows) {
		t.sync();
		if (b.died()) m.dead = true; // places that were not learned are not used
	}
	m.pc += n;
}

// post_lane and wait_lane run POSTL and WAITL.
DEV void post_lane(const Block &b, const Team &t, Machine &m) {
	InterpInstr in = b.instr(m.pc);
	t.sync();
	if (t.thread() == 0) {
		fence_block();
		shared_add(&b.at<u32>(b.a.sems + 4 * in.word), in.delta);
	}
	m.pc++;
}

DEV void wait_lane(const Block &b, const Team &t, Machine &m) {
	InterpInstr in = b.instr(m.pc);
	if (t.thread() == 0 && !m.dead) {
		volatile u32 &sem = b.at<volatile u32>(b.a.sems + 4 * in.word);
#pragma unroll 1
		for (u32 turns = 1; sem < in.delta; turns++) {
			if (aborted(b, turns)) {
				m.dead = true;
				break;
			}
			turn();
		}
		if (!m.dead) shared_add(&b.at<u32>(b.a.sems + 4 * in.word), 0 - in.delta);
		fence_block();
	}
	t.sync();
	if (b.died()) m.dead = true;
	m.pc++;
}
