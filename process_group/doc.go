// Package processgroup is ordered asynchronous collectives with checks, on
// device.Buffer. It stands in directory process_group; goimports writes the
// import by itself, and package dist has aliases.
//
// A Group is a set of ranks that call the same collectives in the same order.
// A call returns a Work at once; the operation progresses without further
// calls, and Wait says how it ended:
//
//	w := g.AllReduce(device.SliceOf(grad), goccl.Sum)
//	...
//	if err := w.Wait(ctx); err != nil { ... }
//
// Order. The order of calls is the order of execution. Calls of several
// goroutines are serialised; which comes first is then up to the program, and
// must be the same on all ranks. Different groups progress independently.
//
// Ranks. Every rank in this package is a rank of the group, 0 to Size()-1;
// GlobalRank translates.
//
// Refusals. A wrong call is refused before anything moves. Its Work holds the
// error, and all other ranks fail with the same sentence, since they would wait
// for ever for an operation that this rank cannot take part in.
//
// Failures. The first cause wins, travels to all ranks, cancels Context and ends
// all operations. The first line of every error is then the same sentence on
// all ranks; further lines say what the reporting rank was doing. A group that
// has failed does not recover: make another one from the survivors.
//
// Buffers belong to an operation from the call until Wait, Test or Done says that
// it has ended. They are kept reachable in between, also when the Work is dropped.
package processgroup
