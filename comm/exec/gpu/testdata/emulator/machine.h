// A machine that keeps no promise that the kernels were not given. All threads of all
// blocks are coroutines, and chance says which goes on, so that every seed is another
// interleaving and a failure happens again with its seed. Blocks, and single warps,
// are held up for a while now and then.
//
// A weak store goes into a buffer of its thread; a barrier makes it known to the block,
// a fence of any thread that knows of it to the others, and the end of the launch as
// well. Chance may do so earlier. A strong store is known at once, before weak ones that
// were made earlier. So data whose fence or barrier is missing arrives after its flag.
// Every access must lie in one allocation and be aligned.
#pragma once

#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

namespace emulator {

typedef uint64_t word;

enum : uint32_t { Warp = 4 };

// Chance is xorshift64*.
struct Chance {
	word state = 1;
	uint32_t next() {
		state ^= state >> 12, state ^= state << 25, state ^= state >> 27;
		return (uint32_t)(state * 0x2545f4914f6cdd1dull >> 32);
	}
	uint32_t below(uint32_t n) { return (uint32_t)((word)next() * n >> 32); }
};

// Cell is what is known of 8 bytes: those that mask says.
struct Cell {
	word value = 0, mask = 0;
	void put(word v, word m) { value = (value & ~m) | (v & m), mask |= m; }
	word over(word below) const { return (below & ~mask) | (value & mask); }
};
typedef std::unordered_map<word, Cell> Buffer; // by address / 8

struct Thread;
struct Meeting {
	uint32_t arrived = 0, expected = 0;
	bool all = true, verdict = true; // of a vote
	std::vector<Thread *> waiting;
};

struct Block {
	uint32_t index, threads, left;
	std::vector<char> shared;
	Buffer known;
	Meeting all, groups[16];
	std::vector<Meeting> warps;
	std::vector<std::unique_ptr<Thread>> members;
	std::function<void()> body;
	bool held = false;
	std::vector<bool> held_warps;
};

struct Thread {
	uint32_t index;
	Block *block;
	Buffer own;
	std::vector<char> stack;
	ucontext_t first;
	jmp_buf at;
	bool begun = false, ready = true, done = false;
};

struct Allocation {
	std::unique_ptr<char[]> memory;
	word size;
};

struct Failure : std::runtime_error {
	using std::runtime_error::runtime_error;
};

static Thread *self;
static Chance dice;
static jmp_buf scheduler;
static std::map<word, Allocation> allocations; // by address
static std::string trouble;		       // of the thread that runs
static word watched[16], watchers;	       // abort words

static bool chance(uint32_t n) { return dice.below(n) == 0; }

// leave goes back to the scheduler.
static void leave() {
	if (_setjmp(self->at) == 0) _longjmp(scheduler, 1);
}

[[noreturn]] static void fail(const std::string &what) {
	trouble = what + " (block " + std::to_string(self->block->index) + ", thread " + std::to_string(self->index) + ")";
	_longjmp(scheduler, 1);
}

static void yield() { leave(); }
static void maybe() {
	if (chance(8)) leave();
}

static void aligned(word p, uint32_t n) {
	if (p % n != 0) fail("an access of " + std::to_string(n) + " bytes is not aligned");
}

static char *check(word p, uint32_t n) {
	aligned(p, n);
	auto it = allocations.upper_bound(p);
	if (it == allocations.begin()) fail("an access outside of all memory");
	--it;
	if (p + n > it->first + it->second.size) fail("an access " + std::to_string(p - it->first - it->second.size) + " bytes behind an allocation of " + std::to_string(it->second.size));
	return reinterpret_cast<char *>(p);
}

static word mask_of(word p, uint32_t n) { return (n == 8 ? ~0ull : ((1ull << 8 * n) - 1) << 8 * (p % 8)); }

static word memory(word cell) {
	word v = 0;
	// An allocation may end inside a cell.
	auto it = allocations.upper_bound(cell * 8 + 7);
	--it;
	word end = it->first + it->second.size;
	for (int i = 0; i < 8; i++)
		if (cell * 8 + i >= it->first && cell * 8 + i < end) v |= (word) * reinterpret_cast<unsigned char *>(cell * 8 + i) << 8 * i;
	return v;
}

static void commit(word cell, const Cell &c) {
	for (int i = 0; i < 8; i++)
		if (c.mask >> 8 * i & 0xff) *reinterpret_cast<unsigned char *>(cell * 8 + i) = (unsigned char)(c.value >> 8 * i);
}

static void commit_all(Buffer &b) {
	for (auto &c : b) commit(c.first, c.second);
	b.clear();
}

static void commit_one(Buffer &b, word cell) {
	auto it = b.find(cell);
	if (it == b.end()) return;
	commit(cell, it->second);
	b.erase(it);
}

static word load(word p, uint32_t n) {
	check(p, n);
	maybe();
	word cell = p / 8, v = memory(cell);
	for (Buffer *b : {&self->block->known, &self->own}) {
		auto it = b->find(cell);
		if (it != b->end()) v = it->second.over(v);
	}
	return (v & mask_of(p, n)) >> 8 * (p % 8);
}

static void store(word p, word v, uint32_t n) {
	check(p, n);
	maybe();
	self->own[p / 8].put(v << 8 * (p % 8), mask_of(p, n));
	if (chance(8)) {
		commit_one(self->block->known, p / 8);
		commit_one(self->own, p / 8);
	}
}

static void post(word p, word v, uint32_t n) {
	check(p, n);
	maybe();
	commit_one(self->block->known, p / 8);
	commit_one(self->own, p / 8);
	Cell c;
	c.put(v << 8 * (p % 8), mask_of(p, n));
	commit(p / 8, c);
}

// share makes what this thread wrote known to its block.
static void share() {
	for (auto &c : self->own) {
		self->block->known[c.first].put(c.second.value, c.second.mask);
		if (chance(8)) commit_one(self->block->known, c.first);
	}
	self->own.clear();
}

static void fence() {
	share();
	commit_all(self->block->known);
	maybe();
}

static void meet(Meeting &m, uint32_t n) {
	share();
	if (m.arrived > 0 && m.expected != n) fail("threads meet at one barrier with different numbers");
	m.expected = n;
	m.waiting.push_back(self);
	if (++m.arrived < n) {
		self->ready = false;
		leave();
		return;
	}
	m.arrived = 0;
	m.verdict = m.all, m.all = true;
	for (Thread *t : m.waiting) t->ready = true;
	m.waiting.clear();
	maybe();
}

// vote is true when all n threads that meet vote so. They meet again only after all
// have read the verdict of the last meeting.
static bool vote(Meeting &m, uint32_t n, bool yes) {
	m.all = m.all && yes;
	meet(m, n);
	bool all = m.verdict;
	meet(m, n);
	return all;
}

} // namespace emulator
