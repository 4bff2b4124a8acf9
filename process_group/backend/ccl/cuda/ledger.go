package cuda

import (
	"sync"

	"github.com/goccl/goccl/device/cuda"
)

// The blocks of a collective wait for other ranks' blocks, so all of them must run
// at the same time; and a block takes a whole multiprocessor. Kernels of two
// communicators on one GPU may start in different orders on different ranks: if they
// did not fit beside each other, each could keep out the one that the other waits
// for. So the ledger of this process grants multiprocessors of a GPU to
// communicators: to each at most half of what the ones before it have left, so that
// something is left for the next, and never more together than there are.

// grants is how many multiprocessors are granted, by GPU.
type grants struct {
	mu    sync.Mutex
	taken map[cuda.UUID]int
}

var ledger = grants{taken: map[cuda.UUID]int{}}

// take grants up to want of the multiprocessors of a GPU, at least one.
func (g *grants) take(on cuda.UUID, all, want int) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := max(min(want, (all-g.taken[on])/2), 1)
	g.taken[on] += n
	return n
}

// giveBack ends a grant.
func (g *grants) giveBack(on cuda.UUID, n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.taken[on] -= n; g.taken[on] == 0 {
		delete(g.taken, on)
	}
}
