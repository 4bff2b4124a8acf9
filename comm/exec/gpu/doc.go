// Package gpu is the executor for memory of GPUs: it runs a plan.Program as one
// kernel, the interpreter (device/kernels/interp), with one block for each channel
// and the lanes of a channel on shares of its warps. The bits of the results are
// those of the host executor. One-shot Programs by LL have kernels of their own, which
// read no image; their peers need not do the same.
//
// # Memory
//
// All that ranks share lies in one region of each rank's device memory. Its Layout
// is a pure function of a few numbers that all ranks agree on, and every rank maps
// all regions when the communicator forms. So a Program needs no peer to be bound:
// it is encoded, with the addresses at which this rank sees the others, uploaded
// once, and kept. Data is written across the link into the region of its reader and
// never read across it.
//
// What a rank counts (epochs, steps of FIFOs, signals) lies in its device memory and
// is advanced by the kernel at its end. An Image holds no absolute value, so a
// captured graph replays and mixes with other launches.
//
// # Order
//
// Launches of one Rank run one after the other, in the order in which all ranks
// make them: they belong on one stream, or are ordered by events. Ranks that share a
// GPU use streams of their own, and few channels: blocks that wait for each other
// must all be resident.
//
// A launch waits, on the device, for those of all other ranks. Where several ranks
// are in one process, nothing that may wait for a device has a place between their
// launches of one operation: no module is loaded, no memory allocated, freed or copied
// by a call that blocks, no graph instantiated, on any device of the process. Driver
// calls of that kind may wait for a kernel of another rank, which waits for a launch
// that comes after the call. New and Bind do all of it ahead, Launch none. Graphs are
// captured and instantiated on all ranks before one of them is launched.
//
// # Ends
//
// Every wait of the kernel looks at a word of host memory. Abort sets it; then
// kernels end within a millisecond or so, the state stays as it was, and the Rank is
// of no use any more. The context is.
//
// Nothing here calls a driver. A Device does; package device/cuda/interp has one.
package gpu
