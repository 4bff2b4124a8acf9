// Package disttest tests distributed code in one process: Run calls a function on
// n ranks that are goroutines, with the real groups, algorithms and failure
// handling, so that go test -race sees all of them at once. Faults happen on a
// plan: at the k-th operation of a rank, or on the link between two.
//
//	func TestStep(t *testing.T) {
//		disttest.Run(t, 4, func(ctx context.Context, g *processgroup.Group) error {
//			return trainOneStep(ctx, g)
//		})
//	}
//
// Run must not be used in tests that run in parallel with others, since it looks
// for goroutines and files that are left behind.
package disttest
