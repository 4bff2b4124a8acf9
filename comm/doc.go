// Package comm is the communicator: NCCL-like collectives on raw buffers, with
// no tensors, no environment and no store.
//
// A communicator is made by all its ranks together, from a unique id that one of
// them created:
//
//	root, _ := comm.ListenRoot(ctx, "127.0.0.1:0", comm.RootOptions{Size: n})
//	go root.Serve(ctx)
//	// root.ID() reaches every rank
//	c, err := comm.Init(ctx, id, comm.Config{Rank: r, Size: n, Transports: ts})
//	err = c.AllReduce(dst, src, goccl.Sum).Wait(ctx)
//
// A collective queues an operation and returns a Pending at once. Operations of
// one communicator run in the order of the calls, which must be the same on all
// ranks; a difference is found and named. Small operations are begun inside the
// call; larger ones by the communicator's own goroutine, or by whoever waits.
//
// Who steps operations holds the engine's token, a field under the queue's lock;
// the token is kept while operations run, the lock only for the first step of a
// small one, inside the call. User code runs under neither.
package comm
