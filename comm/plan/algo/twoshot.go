package algo

import (
	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/graph"
	"github.com/goccl/goccl/comm/plan"
)

// Two-shot: rank r reduces part r of the buffer from all ranks in one step, then
// hands it to all in another. 2 steps, 2(n-1)/n B sent by each rank.
func twoShotAllReduce(k plan.Key, rank int, g *graph.Graph) *plan.Program {
	if k.Window == plan.WindowBoth {
		return twoShotWindow(k, rank, g)
	}
	b := newBuilder(k, rank, g.NRanks, geom(k, plan.Whole, g.NRanks))
	p := pairConns(b)
	b.lane(1, 0, func() {
		b.loop()
		for _, q := range b.others() {
			c := b.lit(q)
			b.move(c, from{in(c)}, to{send(p.to[q])})
		}
		c := b.lit(rank)
		dst := to{out(c)}
		for _, q := range b.others() {
			dst = append(dst, send(p.to[q]))
		}
		b.last(c, b.ordered(in(c), func(q int) plan.Operand { return recv(p.from[q]) }), dst)
		for _, q := range b.others() {
			c := b.lit(q)
			b.move(c, from{recv(p.from[q])}, to{out(c)})
		}
		b.end()
	})
	b.p.Rendezvous = true
	return b.p
}

// twoShotWindow reads the ranks' inputs where they lie and writes the result
// into all outputs: every byte is read once and written once, with no copy.
// Part r of all buffers is touched by rank r alone between the two meetings,
// which is what makes it safe in place.
func twoShotWindow(k plan.Key, rank int, g *graph.Graph) *plan.Program {
	b := newBuilder(k, rank, g.NRanks, geom(k, plan.Whole, g.NRanks))
	others := b.others()
	b.sigs(plan.Words, others)
	b.lane(1, 0, func() {
		b.meet(0, others)
		b.loop()
		c := b.lit(rank)
		dst := to{out(c)}
		for _, q := range others {
			dst = append(dst, plan.Operand{Kind: plan.PeerOut, Peer: b.lit(q), Chunk: c})
		}
		b.last(c, b.ordered(in(c), func(q int) plan.Operand {
			return plan.Operand{Kind: plan.PeerIn, Peer: b.lit(q), Chunk: c}
		}), dst)
		b.end()
		b.meet(1, others)
	})
	b.p.Rendezvous = true
	return b.p
}

func init() { register(goccl.TwoShot, goccl.AllReduce, twoShotAllReduce) }
