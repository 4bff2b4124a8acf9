// Package dist joins a job: the ranks that work together, wherever they run.
//
// Run is the whole of it for most programs: it joins, calls a function once for
// each rank of this process, and ends all ranks with one cause when any of them
// fails. Init and InitLocal are its parts for programs that want more.
//
//	err := dist.Run(ctx, dist.FromEnv(), func(ctx context.Context, g *dist.Group) error {
//		return g.AllReduce(device.SliceOf(grad), goccl.Avg).Wait(ctx)
//	})
//
// # Who a rank is
//
// FromEnv reads what launchers set: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT
// and, where there are, LOCAL_RANK and LOCAL_WORLD_SIZE, as gocclrun, torchrun
// and many schedulers do. Without RANK and WORLD_SIZE the job is one rank, unless
// Config.Local asks for several ranks that are goroutines of this process. Nothing
// else in the package reads the environment.
//
// # How ranks meet
//
// Rank 0 serves a small key-value store at MASTER_ADDR:MASTER_PORT (package
// dist/store), on the listener that the launcher opened when there is one. For
// each group its first rank opens a rendezvous, and its unique id travels through
// the store. Every wait is bounded by Config.Timeout and by the context, and ends
// with an error that names the ranks that are missing. Several jobs may live in
// one process: there is no default group.
//
// # How a job ends
//
// The first failure of any rank is the cause on all of them: an error of the
// function given to Run, a panic, Group.Fail, a process that dies, an operation
// that exceeds the timeout. The first line of every rank's error is the same
// sentence, which names the rank and its host. A job made by FromEnv writes the
// flight recorders of its groups on SIGUSR2 and after a timeout; gocclrun verdict
// reads them.
package dist
