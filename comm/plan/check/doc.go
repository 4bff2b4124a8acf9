// Package check proves Programs before anything runs. It steps the Programs of
// all ranks with the lane machine over symbols instead of bytes, and reports the
// first thing that is wrong as a *Violation with a named Kind.
//
// # What is proved
//
// For one operation (Check), at every size of the small models below, in every
// alias mode that the collective has:
//
//   - every byte of the output holds each contribution exactly once and at its
//     place, scaled once and divided once where the operation needs it;
//   - AllReduce, AllGather and Broadcast: the same expression on all ranks, order
//     of operands included, so that the bits are the same;
//   - nothing deadlocks at the FIFO depth; Survey also says what depth is needed;
//   - both ends of every connector, signal and semaphore advance equally, messages
//     have the length that the receiver expects, and fit their slots;
//   - two accesses to one place, of which one is a write, are ordered by something
//     that the Program does: by lanes, ranks and the user, in buffers, windows,
//     scratch slots and FIFO slots;
//   - an operation in place reads no input that it has overwritten;
//   - Program.Rendezvous is what the order of events gives, and a Program that
//     uses scratch is one.
//
// CheckSequence proves the same for operations one after another with everything
// that outlives an operation carried over: FIFO steps, signal counts, epochs.
// Each rank begins an operation after its own end of the one before, and knows
// nothing of the others.
//
// # Why one schedule is enough
//
// A lane never tests and branches: every instruction waits until all it needs is
// there. Each FIFO end, signal and semaphore is used by one lane at a time, which
// is checked. So the lanes form a network whose results, and whether it
// deadlocks, do not depend on the order in which lanes are stepped (Kahn, "The
// semantics of a simple language for parallel programming", 1974). What could
// depend on the schedule is access to shared memory. It is checked by order, not
// by what happened: every lane has a vector clock, an acquire takes over the
// clock of the one release that it must have seen and no later one, and an access
// must come after all conflicting ones in that order (Flanagan and Freund,
// "FastTrack", 2009).
//
// # Small models
//
// Iterations are alike: each advances every counter by the same amount, and a
// FIFO of S slots remembers S steps. So what can happen at K iterations happens
// at K up to S/slices + 2, each with a last iteration of: one element, just
// under a grain, one grain, just over, grains for all chunks but the last, and
// full. A Program that does not loop gets the same cuts within one chunk. This is
// what "for any size" rests on.
//
// # What is not proved
//
// Kernels and reductions that implement a MOVE, the memory order of the
// hardware, that all lanes of a device are resident together, and that ranks
// agree on the Key (operations compare signatures for that). A term stands for a
// sum up to a chance of about 2^-100 that two 128-bit hashes collide.
package check
