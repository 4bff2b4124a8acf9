// Package nccl is a backend of process groups over NVIDIA's libnccl.so.2, which it
// loads at run time: for clusters that run NCCL, and as the yardstick for the
// library's own engine. It moves memory of GPUs; host memory belongs to groups of
// backend ccl.
//
//	import _ "github.com/goccl/goccl/process_group/backend/nccl"
//
//	dev, err := device.Open(device.ID{Kind: device.CUDA, Index: localRank})
//	cfg := dist.FromEnv()
//	cfg.Backend, cfg.Device = "nccl", dev
//
// # Order
//
// An operation runs on the group's own stream, of high priority, after what was
// queued on the stream of its call; Work.Join makes a stream wait for it. NCCL gets
// the operations of a group in the order of their calls. Config.OnCaller gives
// NCCL's own order instead.
//
// A stream that is being captured into a graph draws the operations on it in, to be
// joined again before the end of the capture. Operations like them must have run
// before: NCCL connects ranks at the first of a kind, which a graph cannot hold.
//
// # Waiting for other ranks
//
// Communicators do not block unless they are asked to: NCCL's thread launches, and
// what was started meanwhile waits in a queue of ours. So joining, starting and
// aborting are bounded whatever other ranks do. A session of our own beside NCCL's
// connections names the ranks that are missing, late or gone, carries the cause of a
// failure to all, and compares what the ranks have called, since NCCL does not notice
// when they disagree. That comparison comes a moment after the calls; sends and
// receives, and their tags, are not compared.
package nccl
