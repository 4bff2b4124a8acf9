package autotune

import (
	"fmt"
	"math/bits"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/autotune/model"
)

// place is where a Best stands in the table.
type place struct {
	class  model.Class
	coll   goccl.Collective
	window bool
	ranks  int
	log2   int
}

// placeOf returns where the answer to q would stand.
func placeOf(q *model.Query) place {
	return place{q.Class, q.Coll, q.Window, q.Ranks, SizeClass(q.Bytes)}
}

// SizeClass returns the size class of a buffer, the binary logarithm of its bytes
// rounded down; 0 for an empty one.
func SizeClass(b int64) int { return max(bits.Len64(uint64(max(b, 0)))-1, 0) }

// entry reads the words of b.
func (b *Best) entry() (place, model.Choice, error) {
	class, ok := model.ParseClass(b.Class)
	if !ok {
		return place{}, model.Choice{}, fmt.Errorf("no class of connections is called %q", b.Class)
	}
	coll, err := goccl.ParseCollective(b.Coll)
	if err != nil {
		return place{}, model.Choice{}, err
	}
	a, err := goccl.ParseAlgorithm(b.Algo)
	if err != nil {
		return place{}, model.Choice{}, err
	}
	p, err := goccl.ParseProtocol(b.Proto)
	if err != nil {
		return place{}, model.Choice{}, err
	}
	if a == goccl.Auto || p == goccl.AutoProto || b.Ranks < 2 || b.Log2 < 0 || b.Log2 > 62 || b.Channels < 1 || b.Channels > 64 || b.Chunk < 0 || b.Chunk%512 != 0 {
		return place{}, model.Choice{}, fmt.Errorf("%+v: want an algorithm, a protocol, 2 ranks or more, 1 to 64 channels, a size class of 0 to 62 and a chunk that is a multiple of 512", *b)
	}
	return place{class, coll, b.Window, b.Ranks, b.Log2}, model.Choice{Algo: a, Proto: p, Channels: b.Channels, Chunk: b.Chunk}, nil
}

// NewBest returns the entry that makes c the choice for q and its size class.
func NewBest(q model.Query, c model.Choice) Best {
	return Best{Class: q.Class.String(), Coll: q.Coll.String(), Ranks: q.Ranks, Window: q.Window, Log2: SizeClass(q.Bytes),
		Algo: c.Algo.String(), Proto: c.Proto.String(), Channels: c.Channels, Chunk: c.Chunk}
}
