// The emulator as a process: it takes commands on standard input and answers on
// standard output, all numbers little-endian.
//
//	A n           allocates n bytes              -> address
//	F p           frees
//	W p n data    writes
//	R p n         reads                          -> data
//	K p           names an abort word
//	Z             runs; see read_order           -> length, text of what went wrong
#include "interp.cu"
#include "emulator/run.h"

#include <unistd.h>

using emulator::word;

static void need(void *p, size_t n) {
	if (std::fread(p, 1, n, stdin) != n) _exit(0);
}
static word number() {
	word v;
	need(&v, 8);
	return v;
}
static std::string text() {
	std::string s(number(), 0);
	need(&s[0], s.size());
	return s;
}
static void answer(const void *p, size_t n) { std::fwrite(p, 1, n, stdout); }

// with is a kernel with the bytes of its arguments.
template <class A> static std::function<void()> with(void (*kernel)(A), const std::string &bytes) {
	A args;
	if (bytes.size() != sizeof args) {
		std::fprintf(stderr, "%zu bytes of arguments for a kernel that takes %zu\n", bytes.size(), sizeof args);
		_exit(2);
	}
	std::memcpy(&args, bytes.data(), sizeof args);
	return [kernel, args] { kernel(args); };
}

#define NAME(n) {#n, [](const std::string &bytes) { return with(n, bytes); }},
static const std::map<std::string, std::function<std::function<void()>(const std::string &)>> kernels = {KERNELS};

static emulator::Launch launch() {
	std::string name = text();
	auto k = kernels.find(name);
	if (k == kernels.end()) {
		std::fprintf(stderr, "no kernel %s\n", name.c_str());
		_exit(2);
	}
	emulator::Launch l;
	l.blocks = (u32)number(), l.threads = (u32)number(), l.shared = (u32)number();
	l.body = k->second(text());
	return l;
}

static void run() {
	emulator::Order o;
	o.seed = number(), o.most = number(), o.abort_after = number();
	std::vector<emulator::Stream> streams(number());
	for (auto &s : streams)
		for (word n = number(); n > 0; n--) s.queue.push_back(launch());
	std::string what = emulator::run(streams, o);
	word n = what.size();
	answer(&n, 8);
	answer(what.data(), n);
}

int main() {
	for (;;) {
		char c;
		need(&c, 1);
		word p, n;
		switch (c) {
		case 'A': {
			n = number();
			std::unique_ptr<char[]> m(new char[n + 512]());
			p = (reinterpret_cast<word>(m.get()) + 511) / 512 * 512;
			emulator::allocations[p] = {std::move(m), n};
			answer(&p, 8);
			break;
		}
		case 'F': emulator::allocations.erase(number()); break;
		case 'W':
			p = number(), n = number();
			need(reinterpret_cast<void *>(p), n);
			break;
		case 'R':
			p = number(), n = number();
			answer(reinterpret_cast<void *>(p), n);
			break;
		case 'K': emulator::watched[emulator::watchers++] = number(); break;
		case 'Z': run(); break;
		default: _exit(3);
		}
		std::fflush(stdout);
	}
}
