// Just enough of CUDA to run kernels of one dimension on a CPU, for tests: blocks one
// after the other, the threads of a block as coroutines that change places at
// barriers and shuffles only. It shows wrong arithmetic, wrong indices, and a barrier
// that is missing or not reached by all; it shows nothing of memory order.
#pragma once

#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>

#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static
#define __grid_constant__
#define __launch_bounds__(...)

struct Dim {
	unsigned x;
};

static Dim threadIdx, blockIdx, blockDim, gridDim;

namespace host {

// Barrier is met by a fixed number of threads, again and again.
struct Barrier {
	unsigned arrived = 0, generation = 0;
};

// A thread begins on a stack of its own by swapcontext and then changes places by
// _setjmp and _longjmp, which, unlike swapcontext, leave the signal mask to itself and
// so make no system call.
struct Thread {
	ucontext_t context;
	jmp_buf at;
	bool begun = false;
	std::unique_ptr<char[]> stack;
	bool done = false;
};

struct Warp {
	Barrier barrier;
	unsigned char slot[32][16];
};

static ucontext_t scheduler;
static jmp_buf scheduled;
static std::vector<Thread> threads;
static std::vector<Warp> warps;
static Barrier block;
static std::function<void()> body;
static unsigned long long moves; // arrivals and ends so far: without one in a round nothing will ever move

// yield goes back to the scheduler until it resumes this thread.
static __attribute__((noinline)) void yield() {
	if (_setjmp(threads[threadIdx.x].at) == 0) _longjmp(scheduled, 1);
}

// resume runs thread i until it yields or ends.
static __attribute__((noinline)) void resume(unsigned i) {
	Thread &t = threads[i];
	if (_setjmp(scheduled) != 0) return;
	if (t.begun) _longjmp(t.at, 1);
	t.begun = true;
	swapcontext(&scheduler, &t.context);
}

static inline void wait(Barrier &b, unsigned n) {
	moves++;
	unsigned mine = b.generation;
	if (++b.arrived == n) {
		b.arrived = 0;
		b.generation++;
		return;
	}
	while (b.generation == mine) yield();
}

static inline unsigned lanes() {
	unsigned first = threadIdx.x / 32 * 32;
	return blockDim.x - first < 32 ? blockDim.x - first : 32;
}

// exchange gives v to the warp and returns that of the lane from.
template <class T> T exchange(T v, unsigned from) {
	static_assert(sizeof(T) <= 16, "");
	Warp &w = warps[threadIdx.x / 32];
	std::memcpy(w.slot[threadIdx.x % 32], &v, sizeof v);
	wait(w.barrier, lanes());
	std::memcpy(&v, w.slot[from], sizeof v);
	wait(w.barrier, lanes());
	return v;
}

static void enter() {
	body();
	threads[threadIdx.x].done = true;
	moves++;
	_longjmp(scheduled, 1);
}

// run_block returns false when some threads wait for others that have ended or wait
// elsewhere.
static bool run_block(bool backward) {
	unsigned n = blockDim.x, alive = n;
	warps.assign((n + 31) / 32, Warp());
	block = Barrier();
	for (unsigned i = 0; i < n; i++) {
		Thread &t = threads[i];
		t.done = t.begun = false;
		getcontext(&t.context);
		t.context.uc_stack.ss_sp = t.stack.get();
		t.context.uc_stack.ss_size = 64 << 10;
		t.context.uc_link = &scheduler;
		makecontext(&t.context, enter, 0);
	}
	while (alive > 0) {
		unsigned long long before = moves;
		for (unsigned k = 0; k < n; k++) {
			unsigned i = backward ? n - 1 - k : k;
			if (threads[i].done) continue;
			threadIdx.x = i;
			resume(i);
			alive -= threads[i].done;
		}
		if (moves == before) return false;
	}
	return true;
}

// launch runs a grid and returns 0, or 1 when a block hangs. The order of blocks and
// threads means nothing to a right kernel, so tests try both directions. The
// coroutines have a thread without signals to themselves: a caller's runtime may not
// bear another stack under its handlers.
static int launch(unsigned blocks, unsigned n, bool backward, std::function<void()> kernel) {
	int status = 0;
	body = kernel;
	gridDim.x = blocks;
	blockDim.x = n;
	threads = std::vector<Thread>(n);
	for (Thread &t : threads) t.stack.reset(new char[64 << 10]);
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	std::thread([&] {
		for (unsigned k = 0; k < blocks && status == 0; k++) {
			blockIdx.x = backward ? blocks - 1 - k : k;
			if (!run_block(backward)) status = 1;
		}
	}).join();
	pthread_sigmask(SIG_SETMASK, &before, nullptr);
	threads.clear();
	return status;
}

} // namespace host

static inline void __syncthreads() { host::wait(host::block, blockDim.x); }
template <class T> static inline T __shfl_sync(unsigned, T v, unsigned lane) { return host::exchange(v, lane % 32); }
template <class T> static inline T __shfl_xor_sync(unsigned, T v, unsigned mask) { return host::exchange(v, (threadIdx.x % 32) ^ mask); }

template <class T> static inline T atomicAdd(T *p, T v) {
	T was = *p;
	*p += v;
	return was;
}
template <class T> static inline T atomicMin(T *p, T v) {
	T was = *p;
	if (v < was) *p = v;
	return was;
}

template <class To, class From> static inline To host_bits(From f) {
	static_assert(sizeof(To) == sizeof(From), "");
	To t;
	std::memcpy(&t, &f, sizeof t);
	return t;
}
static inline unsigned __float_as_uint(float f) { return host_bits<unsigned>(f); }
static inline float __uint_as_float(unsigned u) { return host_bits<float>(u); }
static inline float __int_as_float(int i) { return host_bits<float>(i); }
