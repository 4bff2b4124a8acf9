package algo

import (
	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/graph"
	"github.com/goccl/goccl/comm/plan"
)

// One-shot: every rank hands all it has to every other rank, then each forms the
// result itself, all in rank order. One step, (n-1) B sent by each rank: for
// messages whose latency counts. Where ranks map each other's memory the data
// goes into scratch, which needs no credit; elsewhere through FIFOs.
//
// A one-shot Program does not loop: the message is one chunk.

func oneShotAllReduce(k plan.Key, rank int, g *graph.Graph) *plan.Program {
	b := newBuilder(k, rank, g.NRanks, geom(k, plan.Whole, 1))
	c := b.lit(0)
	b.lane(1, 0, func() {
		theirs := oneShotPush(b, g, nil)
		b.last(c, b.ordered(in(c), theirs), to{out(c)})
	})
	b.p.Rendezvous = true
	return b.p
}

func oneShotAllGather(k plan.Key, rank int, g *graph.Graph) *plan.Program {
	b := newBuilder(k, rank, g.NRanks, geom(k, plan.PerRank, 1))
	b.lane(1, 0, func() {
		own := out(b.lit(rank))
		theirs := oneShotPush(b, g, &own)
		for _, q := range b.others() {
			b.move(b.lit(q), from{theirs(q)}, to{out(b.lit(q))})
		}
	})
	b.p.Rendezvous = true
	return b.p
}

// oneShotPush sends the input to every other rank, and to also when it is not
// nil, and returns where each rank's data arrives.
func oneShotPush(b *builder, g *graph.Graph, also *plan.Operand) func(q int) plan.Operand {
	c := b.lit(0)
	var dst to
	if also != nil {
		dst = append(dst, *also)
	}
	if g.Mapped {
		for _, q := range b.others() {
			dst = append(dst, plan.Operand{Kind: plan.PeerScratch, Peer: b.lit(q), Slot: b.lit(b.p.Rank)})
		}
		b.move(c, from{in(c)}, dst)
		return func(q int) plan.Operand { return plan.Operand{Kind: plan.Scratch, Slot: b.lit(q)} }
	}
	fifo := pairConns(b)
	for _, q := range b.others() {
		dst = append(dst, send(fifo.to[q]))
	}
	b.move(c, from{in(c)}, dst)
	return func(q int) plan.Operand { return recv(fifo.from[q]) }
}

// pairs are the connectors to and from every other rank.
type pairs struct{ to, from map[int]int }

func pairConns(b *builder) pairs {
	p := pairs{to: map[int]int{}, from: map[int]int{}}
	b.conns(func(ch int) {
		for _, q := range b.others() {
			p.to[q] = b.conn(ch, q, true)
			p.from[q] = b.conn(ch, q, false)
		}
	})
	return p
}

func init() {
	register(goccl.OneShot, goccl.AllReduce, oneShotAllReduce)
	register(goccl.OneShot, goccl.Barrier, oneShotAllReduce)
	register(goccl.OneShot, goccl.AllGather, oneShotAllGather)
}
