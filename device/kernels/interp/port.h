// What the interpreter needs of a machine. Its code is written in these terms alone,
// so that it runs on a GPU and, with the other definition of them, in an emulator on
// a CPU that shows missing fences and barriers.
//
// Addresses in device memory are u64. A weak store (st...) is seen by other threads
// of the block after a barrier, by other blocks and ranks after a fence that follows
// the barrier. A strong store (post64, line128) is seen at once, but not after weak
// ones: a fence stands between data and the word that announces it. Loads see what
// was written when they run.
#pragma once

#include "abi/interp.h"

struct alignas(16) V16 { u64 lo, hi; };

#ifdef __CUDACC_RTC__
#include "interp/port_ptx.h"
#else
#include "emulator/port.h"
#endif
