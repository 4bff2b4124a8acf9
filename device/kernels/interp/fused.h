// The fused form of the one-shot Programs by LL: all that the interpreter would look up
// are arguments, and a thread keeps its units in registers between pushing and
// reducing them. Slots, banks, flags and epoch are those of the Program, so a rank
// that runs the Program and one that runs this form work together.
#pragma once

#include "interp/ll.h"

// Fused is a channel's part. A thread has U units under way together.
template <class R, bool Gather, u32 U> struct Fused {
	const InterpFused &a;
	u64 offset; // of the channel's part in a unit of the user's memory
	u32 bytes, units;
	u64 slot; // from the first channel's slot in the first bank to this one's
	u32 flag;

	DEV u32 left(u32 u) const { return bytes - 8 * u < 8 ? bytes - 8 * u : 8; } // bytes of unit u
	DEV u64 mine(u64 base, u32 q) const { return base + (Gather ? q * a.call.unit : 0) + offset; }

	// arrived waits for a line. false: aborted.
	DEV bool arrived(u64 p, V16 &line) const {
#pragma unroll 1
		for (u32 turns = 1; !LL::full(line, flag); turns++) {
			if (turns % AbortSpins == 0 && host32((u64)&a.status->abort) != 0) return false;
			turn();
			line = ld128(p);
		}
		return true;
	}

	// push hands the units first, first + threads, ... to all others.
	DEV void push(u32 first, const u64 (&w)[U]) const {
#pragma unroll 1
		for (u32 i = 1; i < a.ranks; i++) {
			u32 q = a.rank + i < a.ranks ? a.rank + i : a.rank + i - a.ranks;
			u64 p = a.mates[q].to + slot + 16ull * first;
#pragma unroll
			for (u32 k = 0; k < U; k++)
				if (first + k * threads() < units) line128(p + 16ull * k * threads(), {(u32)w[k] | (u64)flag << 32, w[k] >> 32 | (u64)flag << 32});
		}
	}

	// receive waits for rank q's units.
	DEV bool receive(u32 q, u32 first, u64 (&v)[U]) const {
		u64 p = a.mates[q].from + slot + 16ull * first;
		V16 line[U];
#pragma unroll
		for (u32 k = 0; k < U; k++)
			if (first + k * threads() < units) line[k] = ld128(p + 16ull * k * threads());
#pragma unroll
		for (u32 k = 0; k < U; k++) {
			if (first + k * threads() >= units) continue;
			if (!arrived(p + 16ull * k * threads(), line[k])) return false;
			v[k] = join((u32)line[k].lo, (u32)line[k].hi);
		}
		return true;
	}

	DEV void store(u64 base, u32 first, const u64 (&v)[U]) const {
#pragma unroll
		for (u32 k = 0; k < U; k++) {
			u32 u = first + k * threads();
			if (u < units) LL::store(base + 8ull * u, v[k], left(u), a.esize);
		}
	}

	// reduce adds up all ranks' units, in their order.
	DEV bool reduce(u32 first, u64 (&w)[U]) const {
		typename R::Acc acc[U];
#pragma unroll 1
		for (u32 q = 0; q < a.ranks; q++) {
			u64 v[U];
			if (q == a.rank) {
#pragma unroll
				for (u32 k = 0; k < U; k++) v[k] = w[k];
			} else if (!receive(q, first, v)) {
				return false;
			}
#pragma unroll
			for (u32 k = 0; k < U; k++) {
				if (q == 0) acc[k] = R::widen(v[k]);
				else R::add(acc[k], v[k]);
			}
		}
#pragma unroll
		for (u32 k = 0; k < U; k++) {
			w[k] = R::narrow(acc[k]);
			if (a.factor != 1) w[k] = R::scale(w[k], a.factor);
			if (a.div != 0) w[k] = R::divide(w[k], a.div);
		}
		store(mine((u64)a.call.out, 0), first, w);
		return true;
	}

	// gather stores every rank's units.
	DEV bool gather(u32 first, u64 (&w)[U]) const {
		store(mine((u64)a.call.out, a.rank), first, w);
#pragma unroll 1
		for (u32 q = 0; q < a.ranks; q++) {
			u64 v[U];
			if (q == a.rank) continue;
			if (!receive(q, first, v)) return false;
			store(mine((u64)a.call.out, q), first, v);
		}
		return true;
	}

	// sweep writes the lines that no message reaches; see sweeps.
	DEV void sweep() const {
#pragma unroll 1
		for (u32 q = 0; q < a.ranks; q++) {
			if (q == a.rank) continue;
#pragma unroll 1
			for (u32 u = units + thread(); u < a.slot_bytes / 16; u += threads()) line128(a.mates[q].to + slot + 16ull * u, {0, 0});
		}
	}

	// load reads the units first, first + threads, ... of the input.
	DEV void load(u32 first, u64 (&w)[U]) const {
#pragma unroll
		for (u32 k = 0; k < U; k++) {
			u32 u = first + k * threads();
			w[k] = u < units ? LL::load((u64)a.call.in + offset + 8ull * u, left(u), a.esize) : 0;
		}
	}

	// run does the part. false: aborted. The first loads are under way together with the
	// one that brought the epoch, which opaque keeps from being waited for before.
	DEV bool run(u64 epoch) {
		u64 w[U];
		u32 first = thread();
		load(first, w);
		u32 e = opaque((u32)epoch);
		slot = channel() * a.block + e % InterpBanks * a.slot_bytes;
		flag = flag_of(a.flag_mask, e);
#pragma unroll 1
		while (first < units) {
			if (R::reduces && a.pre && a.call.scaled)
#pragma unroll
				for (u32 k = 0; k < U; k++) w[k] = R::scale(w[k], a.call.scale);
			push(first, w);
			if (!(Gather ? gather(first, w) : reduce(first, w))) return false;
			first += U * threads();
			load(first, w);
		}
		if (sweeps(a.flag_mask, e, InterpBanks)) sweep();
		return true;
	}
};

template <class R, bool Gather> DEV void fused(const InterpFused &a) {
	u64 state = (u64)a.state + (u64)channel() * a.state_bytes, epoch = ld64(state);
	u64 ch = channel(), extra = a.call.extra;
	u64 lo = (ch * a.call.per + (ch < extra ? ch : extra)) * a.grain, hi = lo + (a.call.per + (ch < extra)) * a.grain;
	if (lo > a.call.unit) lo = a.call.unit;
	if (hi > a.call.unit) hi = a.call.unit;
	u32 bytes = (u32)(hi - lo), units = bytes > 8 ? (bytes + 7) / 8 : 1; // also nothing is a message
	bool ok = units <= threads() ? Fused<R, Gather, 1>{a, lo, bytes, units}.run(epoch) : Fused<R, Gather, 4>{a, lo, bytes, units}.run(epoch);
	// All have read the epoch. After an abort it stays as it was.
	if (block_all(ok) && thread() == 0) st64(state, epoch + 1);
}
