// The Simple protocol: bulk data, then one word that says it is there. The warps of a
// team wait each for itself, move together, and meet; then the last warp posts. In a
// team of InterpPosterFrom warps or more it does nothing else, so that the fence
// before a post, a microsecond over a link, overlaps with the next move.
#pragma once

#include "interp/move.h"

struct Simple {
	static DEV u32 movers(const Team &t) { return t.warps - (t.warps >= InterpPosterFrom); }

	// ready waits for one operand, of which this warp has done s steps: for a source to
	// have arrived, for a destination to be free.
	static DEV bool ready(const Block &b, const Team &t, const Machine &m, const InterpOpnd &o, u64 s) {
		bool send = o.kind == InterpKindFifoSend, receive = o.kind == InterpKindFifoRecv;
		if (send && s < slots_of(b)) return true;
		// In one place, so that the threads of a warp look at their words together.
		if (send || receive) return reached(b, t, o.conn, s + 1 - (send ? slots_of(b) : 0));
		if (o.kind != InterpKindScratch) return true;
		return until(b, scratch_flag(b, b.head().rank, (u32)m.eval(b, o.slot)), b.epoch() + 1, &s);
	}

	// places waits for all operands and says where they are, one to a thread of the warp.
	// The connectors count on.
	static DEV bool places(const Block &b, const Team &t, const Machine &m, const InterpInstr &in, u32 off) {
		bool ok = true;
#pragma unroll 1
		for (u32 q = t.rank(); q < (u32)in.nsrc + in.ndst; q += Warp) {
			InterpOpnd o = operand(b, in, q);
			bool fifo = o.kind == InterpKindFifoRecv || o.kind == InterpKindFifoSend;
			bool scale = o.kind == InterpKindIn && b.a.call.scaled && (in.flags & InterpPre);
			b.place(t.own(), q) = {where(b, t, m, o, off), 0, 0, scale};
			ok = (m.dead || ready(b, t, m, o, fifo ? step(b, t, o.conn) : 0)) && ok;
			if (fifo) b.count(t.own(), o.conn).done++;
		}
		return warp_all(ok);
	}

	// post tells the peers: slots are full, slots are free.
	static DEV void post(const Block &b, const Team &t, const Machine &m, const InterpInstr &in, bool counts) {
#pragma unroll 1
		for (u32 q = t.rank(); q < (u32)in.nsrc + in.ndst; q += Warp) {
			InterpOpnd o = operand(b, in, q);
			bool fifo = o.kind == InterpKindFifoRecv || o.kind == InterpKindFifoSend;
			u64 word, value;
			if (fifo) {
				if (counts) b.count(t.own(), o.conn).done++;
				word = b.conn(o.conn).post, value = step(b, t, o.conn);
			} else if (o.kind == InterpKindPeerScratch) {
				word = scratch_flag(b, (u32)m.eval(b, o.peer), (u32)m.eval(b, o.slot)), value = b.epoch() + 1;
			} else {
				continue;
			}
			if (b.died()) continue;
			fence_system();
			post64(word, value);
		}
		warp_sync();
	}

	static DEV Job job(const Block &b, const Team &t, const InterpInstr &in, u32 bytes, u32 threads) {
		Job j = {t.own(), in.nsrc, in.ndst, bytes, t.thread(), threads, b.a.call.scale, 1, 0, true};
		if (in.flags & InterpPost) j.factor = b.head().factor, j.div = b.head().div;
		j.plain = j.div == 0 && !(b.a.call.scaled && (in.flags & InterpPre));
		return j;
	}

	template <class R> static DEV void move(const Block &b, const Team &t, Machine &m) {
		u32 moving = movers(t);
#pragma unroll 1
		for (u32 s = 0; s < b.head().slices; s++) {
			if (t.warp() < moving) {
				InterpInstr in = b.instr(m.pc);
				u32 bytes, off = m.slice(b, m.length(b, in.chunk), s, &bytes);
				if (!places(b, t, m, in, off)) m.dead = true;
				if (!m.dead && bytes > 0) ::move<R>(b, job(b, t, in, bytes, moving * Warp));
			}
			t.sync();
			if (t.warp() == t.warps - 1) post(b, t, m, b.instr(m.pc), t.warp() >= moving);
		}
		m.pc++;
	}
};
