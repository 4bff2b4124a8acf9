package nccl

import "math/bits"

// acquaintance is the ways in which this rank has met others on a communicator.
// NCCL connects ranks when they first use an algorithm, or first send to each
// other; which algorithm a call uses is its choice by function and size, so the
// ways are told apart by these. Its owner is the turn's holder.
type acquaintance struct {
	ways map[way]struct{}
}

type way struct {
	fn    function
	peer  int // the other side of a transfer, the root
	log2  int // of the elements of a collective
	group bool
}

func wayOf(c *call, group bool) way {
	switch c.fn {
	case send, recv:
		return way{fn: c.fn, peer: c.peer}
	case reduce, broadcast:
		return way{fn: c.fn, peer: c.peer, log2: bits.Len(uint(c.count)), group: group}
	}
	return way{fn: c.fn, log2: bits.Len(uint(c.count)), group: group}
}

// all reports whether nothing in calls is new.
func (a *acquaintance) all(calls []call) bool {
	for i := range calls {
		if _, ok := a.ways[wayOf(&calls[i], len(calls) > 1)]; !ok {
			return false
		}
	}
	return true
}

// add notes calls that have been made.
func (a *acquaintance) add(calls []call) {
	if a.all(calls) {
		return
	}
	if a.ways == nil {
		a.ways = map[way]struct{}{}
	}
	for i := range calls {
		a.ways[wayOf(&calls[i], len(calls) > 1)] = struct{}{}
	}
}
