// Package bucket averages the gradients of a model over the ranks of a group
// while the backward pass runs.
//
// Gradients come one by one, most of them small, and an operation on each would
// cost its latency each time; all at once at the end would leave the wire idle
// during the backward pass. So gradients are gathered in buckets, and each bucket
// is reduced by one operation as soon as it is full.
//
// # The life of a step
//
//	r, err := bucket.New(ctx, g, params, bucket.Config{}) // once, on all ranks
//	for batch := range batches {
//		backward(batch, func(i int) { r.Ready(i) }) // as each gradient is done
//		err = r.Finish(ctx)                         // averages are in place
//		optimise()
//	}
//
// New compares the parameters of all ranks, gives the values of one rank to all,
// and groups the gradients: in reverse order of registration, which is about the
// order in which a backward pass completes them, the first bucket small so that
// the wire is busy early.
//
// Ready copies the gradient into its bucket, unless it lives there (View), and
// counts. When the bucket with the lowest number that has not started is full, it
// starts its operation, and those of full buckets after it. A full bucket waits
// for those before it: all ranks must issue the same operations in one order, and
// gradients may arrive in another order on each. One late gradient therefore
// holds up the buckets behind its own.
//
// Finish starts nothing new when all gradients came. It waits for the buckets in
// order and copies averages back. After the first step it lays the buckets out
// once more, in the order in which gradients became ready on rank 0.
//
// # Results
//
// All ranks end with identical bits, and neither the moment at which a gradient
// became ready nor overlap changes them: only the layout decides which elements
// are summed together. A layout can be kept (State) and put back (Restore).
//
// # What does not fit the pattern
//
// Gradients accumulated over several passes: NoSync. Branches that a rank may not
// take: Config.FindUnused. Ranks with unequal numbers of batches: Config.Uneven
// and Join. Frameworks that compute all gradients in one go: Reduce. Another
// reduction than the average: Hook, and package bucket/hook. A tensor with gaps is
// packed before it comes here.
//
// # On a device
//
// A model whose values and gradients lie on a device names it in Config.Device. Buckets
// are memory of that device, from the group where it has such. Gradients are announced
// when the work that computes them has been queued, with the stream that it is on, and
// the averages come back to a stream, while the host goes on:
//
//	r.Ready(i, processgroup.OnStream(compute)) // queued: the kernel that writes View(i)
//	err = r.FinishOn(compute)                  // what is queued next sees averages
//
// What ranks compare and tell each other, besides gradients, goes through
// Group.Exchange.
package bucket
