package dist

import (
	"iter"
	"math/rand/v2"
)

// Shard yields the indices of this rank's part of n samples in the given epoch.
// The samples are put into an order that depends on seed and epoch alone, and
// rank r of N takes those at r, r+N, r+2N, ...: so what all ranks take together in
// their first k steps is the same for every number of ranks, as long as k*N is.
// Every rank gets equally many; when n does not divide, the order begins again
// from its start, so that a few samples come twice.
func Shard(n int, g *Group, seed uint64, epoch int) iter.Seq[int] {
	return shard(n, g.Rank(), g.Size(), seed, epoch)
}

func shard(n, rank, size int, seed uint64, epoch int) iter.Seq[int] {
	return func(yield func(int) bool) {
		if n <= 0 {
			return
		}
		order := rand.New(rand.NewPCG(seed, uint64(epoch))).Perm(n)
		for at := rank; at-rank < n; at += size {
			if !yield(order[at%n]) {
				return
			}
		}
	}
}
