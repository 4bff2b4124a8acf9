// What the lanes of a block share: the image of the Program, the channel's state, and
// the working memory of each warp, all in shared memory, in the order of InterpArgs.
#pragma once

#include "interp/port.h"

static_assert(sizeof(InterpHead) % 16 == 0 && sizeof(InterpChan) % 16 == 0 && sizeof(InterpConn) % 16 == 0 && sizeof(InterpSig) % 16 == 0 &&
	sizeof(InterpWalk) % 16 == 0, "what follows is read in pieces of 16 bytes");

typedef InterpWalk Walk;
typedef InterpPlace Place;

// Every warp counts for itself: all warps of a lane come to the same counts, and none
// has to wait for another to know where it stands.
typedef InterpCount Count;

// Block finds the parts. It has no state of its own: what it knows are the arguments,
// which cost no register, and where shared memory is, which would cost a slow
// instruction each time.
struct Block {
	const InterpArgs &a;
	Shared s;

	// load fills shared memory. The caller synchronises the block.
	DEV void load() const {
		u32 image = (a.common + a.channel) / 16, n = image + a.state_bytes / 16;
		u64 common = (u64)a.image, mine = common + (u64)channel() * a.channel;
		u64 from = (u64)a.state + (u64)channel() * a.state_bytes;
#pragma unroll 1
		for (u32 i = thread(); i < n; i += threads()) {
			u64 p = i * 16 < a.common ? common : mine; // the first channel's part follows the common one
			at<V16>(i * 16) = ld128(i < image ? p + i * 16 : from + (i - image) * 16);
		}
#pragma unroll 1
		for (u32 i = a.sems + thread() * 4; i <= a.dead; i += threads() * 4) at<u32>(i) = 0;
	}

	// begin lets a warp count from where the launch before ended.
	DEV void begin(u32 warp) const {
#pragma unroll 1
		for (u32 i = thread() % Warp; i < counted(); i += Warp) count(warp, i) = {word(state_of(i)), word(state_of(i) + 1)};
		warp_sync();
	}

	template <class T> DEV T &at(u32 offset) const { return *reinterpret_cast<T *>(in_shared(s) + offset); }
	// fetch reads a structure of 16 bytes at once.
	template <class T> DEV T fetch(u32 offset) const {
		static_assert(sizeof(T) == 16, "fetch");
		union { V16 v; T t; } u;
		u.v = at<V16>(offset);
		return u.t;
	}

	DEV const InterpHead &head() const { return a.head; }
	DEV u32 version() const { return at<InterpHead>(0).version; }
	DEV InterpInstr instr(u32 pc) const { return fetch<InterpInstr>((u32)sizeof(InterpHead) + pc * 16); }
	DEV InterpOp op(u32 pc) const { return at<InterpInstr>((u32)sizeof(InterpHead) + pc * 16).op; }
	DEV const InterpChan &part() const { return at<InterpChan>(a.common); }
	DEV const InterpConn &conn(u32 c) const { return at<InterpConn>(a.common + (u32)sizeof(InterpChan) + c * (u32)sizeof(InterpConn)); }
	DEV const InterpSig &sig(u32 s) const {
		return at<InterpSig>(a.common + (u32)sizeof(InterpChan) + part().conns * (u32)sizeof(InterpConn) + s * (u32)sizeof(InterpSig));
	}
	// counted is the number of what counts, connectors and then signals; state_of is where
	// number i has its two words in the channel's state.
	DEV u32 counted() const { return (u32)part().conns + part().sigs; }
	DEV u32 state_of(u32 i) const { return i < part().conns ? conn(i).state : sig(i - part().conns).state; }
	DEV u64 word(u32 i) const { return at<u64>(a.common + a.channel + 8 * i); }
	DEV u64 epoch() const { return word(0); }
	DEV u64 base(u32 rank) const { return at<u64>(head().bases + 8 * rank); }
	DEV Walk &walk(u32 warp) const { return at<Walk>(a.walks + warp * (u32)sizeof(Walk)); }
	DEV Place &place(u32 warp, u32 i) const { return at<Place>(a.places + (warp * a.operands + i) * (u32)sizeof(Place)); }
	DEV Count &count(u32 warp, u32 i) const { return at<Count>(a.counts + (warp * a.counters + i) * (u32)sizeof(Count)); }

	// die notes that a thread has given up: nothing that is incomplete is posted, and
	// the state stays as it was. The threads go on through the Program, to meet at
	// every barrier, but wait for nothing and move nothing.
	DEV void die() const { at<volatile u32>(a.dead) = 1; }
	DEV bool died() const { return at<volatile u32>(a.dead) != 0; }
};
