package train

import (
	"iter"
	"math/rand/v2"
)

// Shard yields the samples of one rank in an epoch, of n in all, in the order
// it takes them. The k-th samples of all ranks together must not depend on the
// number of ranks.
type Shard func(n int, seed uint64, epoch int) iter.Seq[int]

// Strided gives rank every size-th element, from its own rank on, of a
// permutation that all ranks draw alike from (seed, epoch).
func Strided(rank, size int) Shard {
	return func(n int, seed uint64, epoch int) iter.Seq[int] {
		return func(yield func(int) bool) {
			order := rand.New(rand.NewPCG(mix(seed, streamOrder), uint64(epoch))).Perm(n)
			for i := rank; i < n; i += size {
				if !yield(order[i]) {
					return
				}
			}
		}
	}
}

// The independent random streams that are drawn from one seed.
const (
	streamOrder   = 0x6f72646572 // the order of samples in an epoch
	streamAugment = 0x61756765   // how a sample is shifted
)

// mix is the finaliser of SplitMix64 (Steele, Lea, Flood 2014) over a and b: it
// spreads nearby numbers over all 64 bits.
func mix(a, b uint64) uint64 {
	x := a + 0x9e3779b97f4a7c15*(b+1)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
