// Package model predicts how long a collective takes from measured constants. It
// is pure: the same question gets the same answer, bit for bit, on every rank and
// on every machine, since ranks that disagreed on an algorithm would not
// understand each other.
package model

import (
	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/plan/algo"
)

// Class is a kind of connection. Each has constants of its own.
type Class uint8

// The classes.
const (
	Inproc  Class = iota // goroutines of one process, which share all memory
	Shm                  // processes of one host that map each other's memory
	Network              // sockets, also on one host

	NumClasses = iota
)

var classNames = [NumClasses]string{"inproc", "shm", "network"}

// String returns "inproc", "shm" or "network".
func (c Class) String() string {
	if c >= NumClasses {
		return "unknown"
	}
	return classNames[c]
}

// ParseClass returns the class with the given name; false when there is none.
func ParseClass(name string) (Class, bool) {
	for i, n := range classNames {
		if n == name {
			return Class(i), true
		}
	}
	return 0, false
}

// Query is what a prediction depends on: facts that are equal on all ranks.
type Query struct {
	Coll         goccl.Collective
	Class        Class
	Window       bool  // input and output lie in memory that all ranks map
	Bytes        int64 // of the whole buffer: all ranks' parts together
	Ranks        int
	RanksPerHost int // the most ranks of one host
	Cores        int // that the ranks of a host share
	// MaxOneShot is the most bytes of a one-shot message (of one rank's part for
	// AllGather).
	MaxOneShot int64
	// MaxChunkLL and MaxChunkSimple are the most bytes of a chunk.
	MaxChunkLL, MaxChunkSimple int64
}

// Choice is one way to run a collective.
type Choice struct {
	Algo     goccl.Algorithm
	Proto    goccl.Protocol
	Channels int
	Chunk    int64 // bytes; 0: the most
}

// MaxCandidates bounds what AppendCandidates appends.
const MaxCandidates = 24

// smallChunk is the smaller of the chunks that are considered for Simple: slots
// of this size stay in a second-level cache.
const smallChunk = 32 << 10

// order is how algorithms stand when predictions are equal: fewest steps first.
var order = [...]goccl.Algorithm{goccl.OneShot, goccl.TwoShot, goccl.Direct, goccl.Tree, goccl.Ring}

// offered lists, for each collective, the algorithms that it has.
var offered = func() (t [goccl.Barrier + 1][]goccl.Algorithm) {
	for c := range t {
		for _, a := range order {
			if algo.Supports(goccl.Collective(c), a, 2) == nil {
				t[c] = append(t[c], a)
			}
		}
	}
	return t
}()

// AppendCandidates appends every choice that is legal for q, in the order that
// breaks ties, at most MaxCandidates. A SendRecv has one, which follows from its
// size. It does not allocate when dst has room and there are at most 255 ranks.
func AppendCandidates(dst []Choice, q *Query) []Choice {
	if !q.Coll.Valid() {
		return dst
	}
	for _, a := range offered[q.Coll] {
		if algo.Supports(q.Coll, a, q.Ranks) != nil {
			continue
		}
		switch {
		case a == goccl.OneShot:
			if q.part() <= q.MaxOneShot {
				dst = append(dst, Choice{a, goccl.LL, 1, 0})
			}
		case q.windowed(a):
			dst = append(dst, Choice{a, goccl.Simple, 1, 0})
		case q.Coll == goccl.SendRecv:
			p := goccl.Simple
			if q.Bytes <= q.MaxChunkLL {
				p = goccl.LL
			}
			dst = append(dst, Choice{a, p, 1, 0})
		default:
			dst = q.appendChunks(dst, a, 1)
			if a == goccl.Tree {
				dst = q.appendChunks(dst, a, 2)
			}
		}
	}
	return dst
}

// BarrierOf returns a barrier of the same ranks, and how it runs.
func BarrierOf(q *Query) (Query, Choice) {
	b := *q
	b.Coll, b.Bytes, b.Window = goccl.Barrier, 0, false
	return b, Choice{goccl.OneShot, goccl.LL, 1, 0}
}

// appendChunks appends the protocols and chunks of an algorithm. A larger chunk
// is left out when the buffer fills no smaller one.
func (q *Query) appendChunks(dst []Choice, a goccl.Algorithm, channels int) []Choice {
	dst = append(dst, Choice{a, goccl.LL, channels, 0})
	small := Choice{a, goccl.Simple, channels, smallChunk}
	if q.MaxChunkSimple > smallChunk && q.unit(small) > smallChunk {
		dst = append(dst, small)
	}
	return append(dst, Choice{a, goccl.Simple, channels, 0})
}

// part is what a one-shot message carries: a rank's part for AllGather, all of it
// for AllReduce, nothing for Barrier.
func (q *Query) part() int64 {
	switch q.Coll {
	case goccl.AllGather:
		return q.Bytes / int64(max(q.Ranks, 1))
	case goccl.Barrier:
		return 0
	}
	return q.Bytes
}

// windowed reports whether the algorithm would work in the windows themselves.
func (q *Query) windowed(a goccl.Algorithm) bool {
	return q.Window && a == goccl.TwoShot && q.Class != Network
}

// chunk is the bytes of the choice's chunks.
func (q *Query) chunk(c Choice) int64 {
	most := q.MaxChunkSimple
	if c.Proto == goccl.LL {
		most = q.MaxChunkLL
	}
	if c.Algo == goccl.OneShot {
		most = q.MaxOneShot
	}
	if c.Chunk > 0 && c.Chunk < most {
		most = c.Chunk
	}
	return max(most, 1)
}

// unit is what a channel cuts into chunks: a rank's part of the buffer, or all of
// it where every chunk passes every rank.
func (q *Query) unit(c Choice) int64 {
	u := q.Bytes
	switch {
	case c.Algo == goccl.Tree, q.Coll == goccl.Broadcast, q.Coll == goccl.Reduce, q.Coll == goccl.SendRecv:
	default:
		u = ceil(u, int64(max(q.Ranks, 1)))
	}
	return ceil(u, int64(max(c.Channels, 1)))
}

func ceil(a, b int64) int64 { return (a + b - 1) / b }
