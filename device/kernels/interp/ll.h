// The LL protocol: a line of 16 bytes holds 8 bytes of data in two words, and each
// word carries a flag, so that data needs no fence and whoever finds the flags has the
// data. A thread moves the same units of 8 bytes in every move of a chunk; so what a
// lane does in place needs no barrier either.
#pragma once

#include "interp/reduce.h"
#include "interp/wait.h"

// The flags of a connector repeat after flag_mask + 1 steps. A line that no message
// reached meanwhile would then hold the flag of an old one. So the steps of the first
// and the last turn through the slots write every line of their slot, those beyond the
// message with flag 0, which no step has: after the last turn no flag of the first is
// left, and after the next first turn none of the last.
DEV u32 flag_of(u32 mask, u64 s) { return ((u32)s & mask) + 1; }
DEV bool sweeps(u32 mask, u64 s, u32 slots) {
	u32 r = (u32)s & mask;
	return r < slots || r + slots > mask;
}

struct LL {
	enum : u16 { Lines = 1, Sweep = 2 }; // bits of Place.lines

	// place says where operand o is and waits for its slot to be free.
	static DEV bool place(const Block &b, const Team &t, const Machine &m, const InterpInstr &in, const InterpOpnd &o, u32 off, Place *p) {
		bool send = o.kind == InterpKindFifoSend, fifo = send || o.kind == InterpKindFifoRecv;
		bool push = o.kind == InterpKindPeerScratch;
		*p = {where(b, t, m, o, off), 0, 0, 0};
		p->scale = o.kind == InterpKindIn && b.a.call.scaled && (in.flags & InterpPre);
		if (!fifo && !push && o.kind != InterpKindScratch) return true;
		u64 s = fifo ? step(b, t, o.conn) : b.epoch();
		p->flag = flag_of(b.head().flag_mask, s), p->lines = Lines;
		if ((send || push) && sweeps(b.head().flag_mask, s, send ? b.head().slot_mask + 1 : InterpBanks)) p->lines |= Sweep;
		bool ok = !send || m.dead || free_slot(b, t, o.conn, s);
		if (fifo) b.count(t.own(), o.conn).done++;
		return ok;
	}

	static DEV bool places(const Block &b, const Team &t, const Machine &m, const InterpInstr &in, u32 off) {
		bool ok = true;
		warp_sync(); // the places of the move before are not read any more
#pragma unroll 1
		for (u32 q = t.rank(); q < (u32)in.nsrc + in.ndst; q += Warp) {
			Place p;
			ok = place(b, t, m, in, operand(b, in, q), off, &p) && ok;
			b.place(t.own(), q) = p;
		}
		return warp_all(ok);
	}

	// load reads n <= 8 bytes of the user's memory, which is aligned to elements.
	static DEV u64 load(u64 p, u32 n, u32 esize) { return n == 8 && p % 8 == 0 ? ld64(p) : load_elements(p, n, esize); }
	static DEV void store(u64 p, u64 v, u32 n, u32 esize) {
		if (n == 8 && p % 8 == 0) st64(p, v);
		else store_elements(p, v, n, esize);
	}

	static SELDOM u64 load_elements(u64 p, u32 n, u32 esize) {
		u64 v = 0;
#pragma unroll 1
		for (u32 i = 0; i < n; i += esize)
			v |= (esize == 8 ? ld64(p) : esize == 4 ? ld32(p + i) : esize == 2 ? ld16(p + i) : ld8(p + i)) << 8 * i;
		return v;
	}

	static SELDOM void store_elements(u64 p, u64 v, u32 n, u32 esize) {
#pragma unroll 1
		for (u32 i = 0; i < n; i += esize) {
			u64 e = v >> 8 * i;
			if (esize == 8) st64(p, e);
			else if (esize == 4) st32(p + i, (u32)e);
			else if (esize == 2) st16(p + i, e & 0xffff);
			else st8(p + i, e & 0xff);
		}
	}

	static DEV bool full(V16 line, u32 flag) { return (u32)(line.lo >> 32) == flag && (u32)(line.hi >> 32) == flag; }

	// gather reads unit u of the sources q0.., up to G of them, and adds them up. All
	// loads are under way before the first is looked at.
	template <class R, u32 G> static DEV bool gather(const Block &b, u32 own, u32 q0, u32 nsrc, u32 u, u32 n, typename R::Acc &acc) {
		V16 line[G];
#pragma unroll
		for (u32 g = 0; g < G; g++) {
			if (q0 + g >= nsrc) continue;
			Place p = b.place(own, q0 + g);
			if (p.lines) line[g] = ld128(p.addr + 16ull * u);
			else line[g].lo = load(p.addr + 8ull * u, n, b.head().esize);
		}
#pragma unroll
		for (u32 g = 0; g < G; g++) {
			if (q0 + g >= nsrc) continue;
			Place p = b.place(own, q0 + g);
			u64 w = line[g].lo;
			if (p.lines) {
				if (!arrived(b, p.addr + 16ull * u, p.flag, line[g])) return false;
				w = join((u32)line[g].lo, (u32)line[g].hi);
			}
			if (R::reduces && p.scale) w = R::scale(w, b.a.call.scale);
			if (q0 + g == 0) acc = R::widen(w);
			else R::add(acc, w);
		}
		return true;
	}

	// arrived waits for a line.
	static DEV bool arrived(const Block &b, u64 p, u32 flag, V16 &line) {
#pragma unroll 1
		for (u32 turns = 1; !full(line, flag); turns++) {
			if (aborted(b, turns)) return false;
			turn();
			line = ld128(p);
		}
		return true;
	}

	// unit moves unit u, of n bytes. false: aborted.
	template <class R, u32 G> static DEV bool unit(const Block &b, u32 own, const InterpInstr &in, u32 u, u32 n) {
		typename R::Acc acc;
#pragma unroll 1
		for (u32 q = 0; q < in.nsrc; q += G)
			if (!gather<R, G>(b, own, q, in.nsrc, u, n, acc)) return false;
		u64 v = R::reduces && in.nsrc > 1 ? R::narrow(acc) : R::raw(acc);
		if (R::reduces && (in.flags & InterpPost)) {
			if (b.head().factor != 1) v = R::scale(v, b.head().factor);
			if (b.head().div != 0) v = R::divide(v, b.head().div);
		}
#pragma unroll 1
		for (u32 q = 0; q < in.ndst; q++) {
			Place p = b.place(own, in.nsrc + q);
			u64 flag = (u64)p.flag << 32;
			if (p.lines) line128(p.addr + 16ull * u, {(u32)v | flag, v >> 32 | flag});
			else store(p.addr + 8ull * u, v, n, b.head().esize);
		}
		return true;
	}

	// sweep writes the lines from number n on of destinations in their first or last
	// turn.
	static DEV void sweep(const Block &b, const Team &t, const InterpInstr &in, u32 n) {
#pragma unroll 1
		for (u32 q = 0; q < in.ndst; q++) {
			Place p = b.place(t.own(), in.nsrc + q);
			if (!(p.lines & Sweep)) continue;
			bool fifo = operand(b, in, in.nsrc + q).kind == InterpKindFifoSend;
			u32 lines = (fifo ? b.head().slot_bytes : b.head().scratch_bytes) / 16;
#pragma unroll 1
			for (u32 u = n + t.thread(); u < lines; u += t.threads()) line128(p.addr + 16ull * u, {0, 0});
		}
	}

	// release gives slots back: their lines were read, since their flags were found.
	static DEV void release(const Block &b, const Team &t, const InterpInstr &in) {
		t.sync();
		if (t.warp() != 0) return;
#pragma unroll 1
		for (u32 q = t.rank(); q < in.nsrc; q += Warp) {
			InterpOpnd o = operand(b, in, q);
			if (o.kind == InterpKindFifoRecv && !b.died()) post64(b.conn(o.conn).post, step(b, t, o.conn));
		}
	}

	static DEV bool receives(const Block &b, const InterpInstr &in) {
#pragma unroll 1
		for (u32 q = 0; q < in.nsrc; q++)
			if (operand(b, in, q).kind == InterpKindFifoRecv) return true;
		return false;
	}

	template <class R> static DEV void move(const Block &b, const Team &t, Machine &m) {
		InterpInstr in = b.instr(m.pc);
		u32 length = m.length(b, in.chunk), slices = b.head().slices;
		bool frees = receives(b, in);
#pragma unroll 1
		for (u32 s = 0; s < slices; s++) {
			u32 bytes, off = m.slice(b, length, s, &bytes);
			if (!places(b, t, m, in, off)) m.dead = true;
			// Also an empty slice is a message: one line without data.
			u32 units = bytes > 8 ? (bytes + 7) / 8 : 1;
#pragma unroll 1
			for (u32 u = t.thread(); u < units && !m.dead; u += t.threads()) {
				u32 left = bytes - 8 * u, n = left < 8 ? left : 8;
				bool ok = in.nsrc <= 2 ? unit<R, 2>(b, t.own(), in, u, n) : unit<R, 8>(b, t.own(), in, u, n);
				if (!ok) m.dead = true;
			}
			if (!m.dead) sweep(b, t, in, units);
			if (frees) release(b, t, in);
		}
		m.pc++;
	}
};
