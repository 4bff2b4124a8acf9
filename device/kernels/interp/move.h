// Moving bytes: sources to destinations, reduced on the way. Which thread moves what
// depends on lengths and alignments alone.
#pragma once

#include "interp/reduce.h"
#include "interp/wait.h"

// Job is one slice of a move, all of whose sources have arrived and whose
// destinations are free.
struct Job {
	u32 warp;	     // whose places tell where
	u32 nsrc, ndst;
	u32 bytes;
	u32 thread, threads; // of those that move
	float scale;	     // for places that ask for it
	float factor;	     // for the result; 1: none
	float div;	     // for the result; 0: none
	bool plain;	     // neither scale nor div
};

// add_up reduces two words.
template <class R> DEV u64 add_up(u64 x, u64 y) {
	typename R::Acc acc = R::widen(x);
	R::add(acc, y);
	return R::narrow(acc);
}

// A warp takes U runs of one vector to a thread at a time, one behind the other: the
// addresses of a thread differ by constants. All of a batch is there: a load under a
// condition would keep its register, whose old value might be needed, from all other
// moves.
enum : u32 { Run = Warp * 16 };

// few moves a batch from one or two sources to one or two destinations.
template <class R, u32 NS, u32 ND, u32 U> DEV void few(const Block &b, const Job &job, u64 at) {
	u64 s0 = b.place(job.warp, 0).addr + at, s1 = b.place(job.warp, NS - 1).addr + at;
	u64 d0 = b.place(job.warp, NS).addr + at, d1 = b.place(job.warp, NS + ND - 1).addr + at;
	V16 v[U], w[U];
#pragma unroll
	for (u32 k = 0; k < U; k++) {
		v[k] = ld128(s0 + k * Run);
		if (NS == 2) w[k] = ld128(s1 + k * Run);
	}
#pragma unroll
	for (u32 k = 0; k < U; k++) {
		if (NS == 2) v[k] = {add_up<R>(v[k].lo, w[k].lo), add_up<R>(v[k].hi, w[k].hi)};
		if (R::reduces && job.factor != 1) v[k] = {R::scale(v[k].lo, job.factor), R::scale(v[k].hi, job.factor)};
		st128(d0 + k * Run, v[k]);
		if (ND == 2) st128(d1 + k * Run, v[k]);
	}
}

// many moves a batch from any sources to any destinations.
template <class R, u32 U> DEV void many(const Block &b, const Job &job, u64 at) {
	V16 v[U];
	u64 s = b.place(job.warp, 0).addr + at;
#pragma unroll
	for (u32 k = 0; k < U; k++) v[k] = ld128(s + k * Run);
	if (R::reduces && job.nsrc > 1) {
		typename R::Acc lo[U], hi[U];
#pragma unroll
		for (u32 k = 0; k < U; k++) lo[k] = R::widen(v[k].lo), hi[k] = R::widen(v[k].hi);
#pragma unroll 1
		for (u32 q = 1; q < job.nsrc; q++) {
			s = b.place(job.warp, q).addr + at;
#pragma unroll
			for (u32 k = 0; k < U; k++) v[k] = ld128(s + k * Run);
#pragma unroll
			for (u32 k = 0; k < U; k++) R::add(lo[k], v[k].lo), R::add(hi[k], v[k].hi);
		}
#pragma unroll
		for (u32 k = 0; k < U; k++) v[k] = {R::narrow(lo[k]), R::narrow(hi[k])};
	}
	if (R::reduces && job.factor != 1)
#pragma unroll
		for (u32 k = 0; k < U; k++) v[k] = {R::scale(v[k].lo, job.factor), R::scale(v[k].hi, job.factor)};
#pragma unroll 1
	for (u32 q = 0; q < job.ndst; q++) {
		u64 d = b.place(job.warp, job.nsrc + q).addr + at;
#pragma unroll
		for (u32 k = 0; k < U; k++) st128(d + k * Run, v[k]);
	}
}

// Few and Many are those as types, with their size of a batch.
template <class R, u32 NS, u32 ND> struct Few {
	enum : u32 { Batch = 8 };
	template <u32 U> static DEV void batch(const Block &b, const Job &job, u64 at) { few<R, NS, ND, U>(b, job, at); }
};
template <class R> struct Many {
	enum : u32 { Batch = 4 };
	template <u32 U> static DEV void batch(const Block &b, const Job &job, u64 at) { many<R, U>(b, job, at); }
};

// vectors moves n vectors from byte skip on: whole batches, one to a warp, then single
// vectors. For a plain job.
template <class F> DEV void vectors(const Block &b, const Job &job, u32 skip, u32 n) {
	enum : u32 { Size = F::Batch * Warp };
	u32 whole = n / Size, thread = opaque(job.thread);
#pragma unroll 1
	for (u32 i = thread / Warp; i < whole; i += job.threads / Warp) F::template batch<F::Batch>(b, job, skip + i * (u64)(Size * 16) + thread % Warp * 16);
#pragma unroll 1
	for (u32 i = whole * Size + thread; i < n; i += job.threads) F::template batch<1>(b, job, skip + i * 16ull);
}

template <u32 W> DEV u64 load(u64 p) { return W == 8 ? ld64(p) : W == 4 ? ld32(p) : W == 2 ? ld16(p) : ld8(p); }
template <u32 W> DEV void store(u64 p, u64 v) {
	if (W == 8) st64(p, v);
	else if (W == 4) st32(p, v);
	else if (W == 2) st16(p, v);
	else st8(p, v);
}

// pieces moves n pieces of W bytes, a whole number of elements each: the first before
// pieces from byte lo on, the others from byte hi on.
template <class R, u32 W> DEV void pieces(const Block &b, const Job &job, u32 lo, u32 before, u32 hi, u32 n) {
	enum : u32 { U = 2 };
#pragma unroll 1
	for (u32 i = opaque(job.thread); i < n; i += U * job.threads) {
		typename R::Acc acc[U];
		u64 v[U];
		u32 off[U];
#pragma unroll
		for (u32 k = 0; k < U; k++) {
			u32 at = i + k * job.threads;
			off[k] = at < before ? lo + W * at : hi + W * (at - before);
		}
#pragma unroll 1
		for (u32 q = 0; q < job.nsrc; q++) {
			Place p = b.place(job.warp, q);
#pragma unroll
			for (u32 k = 0; k < U; k++) v[k] = i + k * job.threads < n ? load<W>(p.addr + off[k]) : 0;
#pragma unroll
			for (u32 k = 0; k < U; k++) {
				if (R::reduces && p.scale) v[k] = R::scale(v[k], job.scale);
				if (q == 0) acc[k] = R::widen(v[k]);
				else R::add(acc[k], v[k]);
			}
		}
#pragma unroll
		for (u32 k = 0; k < U; k++) {
			v[k] = R::reduces && job.nsrc > 1 ? R::narrow(acc[k]) : R::raw(acc[k]);
			if (R::reduces && job.factor != 1) v[k] = R::scale(v[k], job.factor);
			if (R::reduces && job.div != 0) v[k] = R::divide(v[k], job.div);
		}
#pragma unroll 1
		for (u32 q = 0; q < job.ndst; q++) {
			u64 d = b.place(job.warp, job.nsrc + q).addr;
#pragma unroll
			for (u32 k = 0; k < U; k++)
				if (i + k * job.threads < n) store<W>(d + off[k], v[k]);
		}
	}
}

// body moves n vectors.
template <class R> DEV void body(const Block &b, const Job &job, u32 skip, u32 n) {
	if (job.nsrc == 1 && job.ndst == 1) vectors<Few<R, 1, 1>>(b, job, skip, n);
	else if (job.nsrc == 1 && job.ndst == 2) vectors<Few<R, 1, 2>>(b, job, skip, n);
	else if (R::reduces && job.nsrc == 2 && job.ndst == 1) vectors<Few<R, 2, 1>>(b, job, skip, n);
	else if (R::reduces && job.nsrc == 2 && job.ndst == 2) vectors<Few<R, 2, 2>>(b, job, skip, n);
	else vectors<Many<R>>(b, job, skip, n);
}

// apart is the bits in which the addresses of the operands differ.
DEV u32 apart(const Block &b, const Job &job) {
	u32 first = (u32)b.place(job.warp, 0).addr, diff = 0;
#pragma unroll 1
	for (u32 q = 1; q < job.nsrc + job.ndst; q++) diff |= (u32)b.place(job.warp, q).addr ^ first;
	return diff;
}

// shift_of is the logarithm of the bytes of the largest pieces that all operands
// allow, and the job: only plain jobs move vectors.
template <class R> DEV u32 shift_of(const Block &b, const Job &job) {
	u32 diff = apart(b, job);
	if (job.plain && (diff & 15) == 0) return 4;
	if ((diff & 7) == 0) return 3;
	if (!R::reduces) return (diff & 3) == 0 ? 2 : 0;
	return R::esize == 4 ? 2 : 1;
}

// move does a job: pieces of one width, and elements at both ends, where the operands
// are not aligned to it.
template <class R> DEV void move(const Block &b, const Job &job) {
	u32 shift = shift_of<R>(b, job), lo = (0 - (u32)b.place(job.warp, 0).addr) & ((1u << shift) - 1);
	if (lo > job.bytes) lo = job.bytes;
	u32 n = 1u << shift > R::esize ? (job.bytes - lo) >> shift : 0, hi = lo + (n << shift);
	if (shift == 4) body<R>(b, job, lo, n);
	else if (shift == 3) pieces<R, 8>(b, job, lo, n, 0, n);
	if (!R::reduces && shift == 2) pieces<R, 4>(b, job, lo, n, 0, n);
	u32 before = lo / R::esize, left = before + (job.bytes - hi) / R::esize;
	if (left > 0) pieces<R, R::esize>(b, job, 0, before, hi, left);
}
