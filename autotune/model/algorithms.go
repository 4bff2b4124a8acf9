package model

import "github.com/goccl/goccl"

// fifoSlots is how many chunks of a connection can be under way.
const fifoSlots = 4

// run is the shape of one operation: n ranks, b bytes, cut into parts for the
// ranks and into chunks that channels take one after another.
type run struct {
	n, b, part float64
	iters      float64 // chunks of a channel
	first      float64 // bytes of one chunk
	channels   float64
}

// even is the work of an algorithm in which every rank does the same.
func (r run) even(steps float64, mine effort, peers float64) work {
	mine.messages *= r.channels * r.iters
	return work{steps: steps * r.iters, mine: mine, all: mine.times(r.n), slots: peers * r.channels * fifoSlots * r.first}
}

// piped is how many waits a stream of chunks costs: the first passes every hop,
// each further one comes a wait later.
func (r run) piped(hops float64) float64 { return hops + r.iters - 1 }

func (r run) oneShot(q *Query) work {
	e := effort{messages: 2 * (r.n - 1), copied: (r.n - 1) * r.b, reduced: (r.n + 1) * r.b}
	if q.Coll == goccl.AllGather {
		e = effort{messages: e.messages, copied: (2*r.n - 1) * r.part}
	}
	w := work{steps: 1, mine: e, all: e.times(r.n)}
	if q.Class != Network && q.Coll != goccl.AllGather {
		w.fused = 1
	}
	return w
}

func (r run) twoShot() work {
	return r.even(2, effort{4 * (r.n - 1), 3 * (r.n - 1) * r.part, r.b + r.part}, r.n-1)
}

// window is two-shot in the ranks' own memory: each reads its part from all and
// writes it to all, between two meetings.
func (r run) window() work {
	e := effort{4 * (r.n - 1), (r.n - 1) * r.part, r.b + r.part}
	return work{meets: 2, steps: 2, mine: e, all: e.times(r.n)}
}

// tree counts the rank with two children. With two channels it is a leaf of the
// other tree. Up and down are lanes of their own, so chunks follow each other.
func (r run) tree(n int) work {
	depth, kids := 0.0, 1.0
	for 1<<int(depth+1) <= n {
		depth++
	}
	if n > 2 {
		kids = 2
	}
	inner, leaf := effort{2 * (kids + 1), (kids + 1) * r.b, (kids + 2) * r.b}, effort{2, 2 * r.b, 0}
	if n == 2 {
		inner = effort{2, r.b, 3 * r.b} // the root, which forms the result in its output
	}
	mine := inner
	if r.channels > 1 { // a half of the buffer in each tree, every chunk of it
		mine = effort{inner.messages + leaf.messages, (inner.copied + leaf.copied) / 2, inner.reduced / 2}
	}
	mine.messages *= r.iters
	mine.copied += (2*depth - 1) * r.first // until the last chunk has come down
	leaves := float64((n + 1) / 2)
	all := effort{4 * (r.n - 1) * r.iters * r.channels, (leaves + 2*(r.n-1)) * r.b, (3*r.n - 1 - 2*leaves) * r.b}
	return work{steps: r.piped(2 * depth), mine: mine, all: all, slots: (kids + 1) * r.channels * fifoSlots * r.first}
}

func (r run) ring(c goccl.Collective) work {
	n := r.n
	switch c {
	case goccl.AllReduce:
		return r.even(2*(n-1), effort{4 * (n - 1), (2*n - 1) * r.part, 3 * (n - 1) * r.part}, 1)
	case goccl.ReduceScatter:
		return r.even(n-1, effort{2 * (n - 1), r.part, 3 * (n - 1) * r.part}, 1)
	case goccl.Broadcast:
		fill := (n - 2) * r.first
		return r.chain(effort{2, 2*r.b + fill, 0}, effort{2 * (n - 1), (2*n - 1) * r.b, 0})
	case goccl.Reduce:
		fill := (n - 2) * r.first
		return r.chain(effort{2, 0, 3 * (r.b + fill)}, effort{2 * (n - 1), r.b, 3 * (n - 1) * r.b})
	default: // AllGather
		return r.even(n-1, effort{2 * (n - 1), (2*n - 1) * r.part, 0}, 1)
	}
}

// chain is a line of ranks that every chunk passes.
func (r run) chain(mine, all effort) work { return r.stream(r.n-1, mine, all, 1) }

// stream is a flow of chunks in one direction.
func (r run) stream(hops float64, mine, all effort, peers float64) work {
	mine.messages *= r.iters * r.channels
	all.messages *= r.iters * r.channels
	return work{steps: r.piped(hops), mine: mine, all: all, slots: peers * r.channels * fifoSlots * r.first}
}

func (r run) direct(c goccl.Collective) work {
	n, p := r.n, r.part
	switch c {
	case goccl.ReduceScatter:
		return r.even(1, effort{2 * (n - 1), (n - 1) * p, (n + 1) * p}, n-1)
	case goccl.AllGather, goccl.AllToAll:
		return r.even(1, effort{2 * (n - 1), (2*n - 1) * p, 0}, n-1)
	case goccl.Broadcast:
		return r.stream(1, effort{n - 1, (n-1)*r.b + r.first, 0}, effort{2 * (n - 1), 2 * (n - 1) * r.b, 0}, n-1)
	case goccl.Reduce:
		return r.stream(1, effort{n - 1, r.first, (n + 1) * r.b}, effort{2 * (n - 1), (n - 1) * r.b, (n + 1) * r.b}, n-1)
	case goccl.Gather, goccl.Scatter:
		return r.stream(1, effort{n - 1, r.b, 0}, effort{2 * (n - 1), (2*n - 1) * p, 0}, n-1)
	default: // SendRecv
		return r.stream(1, effort{1, r.b + r.first, 0}, effort{2, 2 * r.b, 0}, 1)
	}
}

// touched is the bytes of a rank's input and output.
func (r run) touched(c goccl.Collective) float64 {
	switch c {
	case goccl.AllReduce, goccl.AllToAll, goccl.Reduce:
		return 2 * r.b
	case goccl.AllGather, goccl.ReduceScatter, goccl.Gather, goccl.Scatter:
		return r.b + r.part
	}
	return r.b
}
