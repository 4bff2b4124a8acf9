// Running launches: one stream for each rank, and in each stream one launch after the
// other.
#pragma once

#include "emulator/machine.h"

namespace emulator {

struct Launch {
	std::function<void()> body;
	uint32_t blocks, threads, shared;
};

struct Stream {
	std::list<Launch> queue;
	std::vector<std::unique_ptr<Block>> running;
};

static void enter() {
	self->block->body();
	share();
	self->done = true;
	self->ready = false;
	if (--self->block->left == 0) commit_all(self->block->known);
	_longjmp(scheduler, 1);
}

static void start(Stream &s) {
	Launch l = std::move(s.queue.front());
	s.queue.pop_front();
	for (uint32_t i = 0; i < l.blocks; i++) {
		std::unique_ptr<Block> b(new Block);
		b->index = i, b->threads = b->left = l.threads;
		b->shared.assign(l.shared, (char)0xa5);
		b->warps.resize(l.threads / Warp);
		b->body = l.body;
		for (uint32_t t = 0; t < l.threads; t++) {
			std::unique_ptr<Thread> th(new Thread);
			th->index = t, th->block = b.get();
			b->members.push_back(std::move(th));
		}
		s.running.push_back(std::move(b));
	}
}

// resume lets a thread run until it leaves.
static void resume(Thread *t) {
	self = t;
	if (_setjmp(scheduler) == 0) {
		if (t->begun) _longjmp(t->at, 1);
		t->begun = true;
		t->stack.resize(32 << 10);
		getcontext(&t->first);
		t->first.uc_stack.ss_sp = t->stack.data();
		t->first.uc_stack.ss_size = t->stack.size();
		t->first.uc_link = nullptr;
		makecontext(&t->first, enter, 0);
		setcontext(&t->first);
	}
	self = nullptr;
}

// hold decides what goes slowly for a while.
static void hold(Block &b) {
	b.held = chance(3);
	b.held_warps.assign(b.warps.size(), false);
	if (chance(2))
		for (size_t w = 0; w < b.warps.size(); w++) b.held_warps[w] = chance(3);
}

struct Order {
	word seed, most, abort_after; // turns between the aborts of one rank and of the next; 0: none
};

// run runs all streams to their ends and returns "", or what went wrong.
static std::string run(std::vector<Stream> &streams, const Order &o) {
	dice.state = o.seed * 2 + 1;
	trouble = "";
	std::vector<Thread *> ready;
	for (word turns = 0;; turns++) {
		if (turns == o.most) return "stuck: nobody comes to an end";
		if (o.abort_after != 0 && turns % o.abort_after == 0 && turns > 0 && turns / o.abort_after <= watchers)
			*reinterpret_cast<uint32_t *>(watched[turns / o.abort_after - 1]) = 1;
		if (turns % 64 == 0 || ready.empty()) {
			ready.clear();
			bool left = false;
			for (Stream &s : streams) {
				for (size_t i = 0; i < s.running.size();) {
					if (s.running[i]->left == 0) s.running.erase(s.running.begin() + i);
					else i++;
				}
				if (s.running.empty() && !s.queue.empty()) start(s);
				for (auto &b : s.running) {
					left = true;
					if (turns % 4096 == 0 || b->held_warps.empty()) hold(*b);
					for (auto &t : b->members)
						if (t->ready && ((!b->held && !b->held_warps[t->index / Warp]) || chance(64))) ready.push_back(t.get());
				}
			}
			if (!left) return "";
			if (ready.empty()) continue;
		}
		Thread *t = ready[dice.below((uint32_t)ready.size())];
		if (!t->ready) {
			ready.clear();
			continue;
		}
		resume(t);
		if (!trouble.empty()) return trouble;
	}
}

} // namespace emulator
