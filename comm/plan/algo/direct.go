package algo

import (
	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/graph"
	"github.com/goccl/goccl/comm/plan"
)

// Direct: every pair of ranks that has something to exchange does so itself, in
// one step. Bytes are those of the result; the number of messages grows with n.

// directReduceScatter: (n-1)/n B sent by each rank.
func directReduceScatter(k plan.Key, rank int, g *graph.Graph) *plan.Program {
	b := newBuilder(k, rank, g.NRanks, geom(k, plan.PerRank, 1))
	p := pairConns(b)
	b.lane(1, 0, func() {
		b.loop()
		for _, q := range b.others() {
			c := b.lit(q)
			b.move(c, from{in(c)}, to{send(p.to[q])})
		}
		c := b.lit(rank)
		b.last(c, b.ordered(in(c), func(q int) plan.Operand { return recv(p.from[q]) }), to{out(b.lit(0))})
		b.end()
	})
	b.p.Rendezvous = true
	return b.p
}

// directAllGather: (n-1)/n B sent by each rank.
func directAllGather(k plan.Key, rank int, g *graph.Graph) *plan.Program {
	b := newBuilder(k, rank, g.NRanks, geom(k, plan.PerRank, 1))
	p := pairConns(b)
	b.lane(1, 0, func() {
		b.loop()
		dst := to{out(b.lit(rank))}
		for _, q := range b.others() {
			dst = append(dst, send(p.to[q]))
		}
		b.move(b.lit(0), from{in(b.lit(0))}, dst)
		for _, q := range b.others() {
			b.move(b.lit(q), from{recv(p.from[q])}, to{out(b.lit(q))})
		}
		b.end()
	})
	b.p.Rendezvous = true
	return b.p
}

// directAllToAll: (n-1)/n B sent by each rank.
func directAllToAll(k plan.Key, rank int, g *graph.Graph) *plan.Program {
	b := newBuilder(k, rank, g.NRanks, geom(k, plan.PerRank, 1))
	p := pairConns(b)
	b.lane(1, 0, func() {
		b.loop()
		for _, q := range b.others() {
			c := b.lit(q)
			b.move(c, from{in(c)}, to{send(p.to[q])})
		}
		own := b.lit(rank)
		b.move(own, from{in(own)}, to{out(own)})
		for _, q := range b.others() {
			c := b.lit(q)
			b.move(c, from{recv(p.from[q])}, to{out(c)})
		}
		b.end()
	})
	b.p.Rendezvous = true
	return b.p
}

// rooted sets up connectors between the root and every other rank: at the root
// one per other rank in the order of others, elsewhere one, number 0.
func rooted(k plan.Key, rank int, g *graph.Graph, base plan.Base, rootSends bool) *builder {
	b := newBuilder(k, rank, g.NRanks, geom(k, base, 1))
	root := int(k.Root)
	b.conns(func(ch int) {
		if rank != root {
			b.conn(ch, root, !rootSends)
			return
		}
		for _, q := range b.others() {
			b.conn(ch, q, rootSends)
		}
	})
	return b
}

// directBroadcast: (n-1) B sent by the root.
func directBroadcast(k plan.Key, rank int, g *graph.Graph) *plan.Program {
	b := rooted(k, rank, g, plan.Whole, true)
	c := b.lit(0)
	b.lane(1, 0, func() {
		b.loop()
		if rank == int(k.Root) {
			dst := to{out(c)}
			for i := range b.others() {
				dst = append(dst, send(i))
			}
			b.move(c, from{in(c)}, dst)
		} else {
			b.move(c, from{recv(0)}, to{out(c)})
		}
		b.end()
	})
	return b.p
}

// directReduce: B sent by every rank but the root, which receives (n-1) B.
func directReduce(k plan.Key, rank int, g *graph.Graph) *plan.Program {
	b := rooted(k, rank, g, plan.Whole, false)
	c := b.lit(0)
	b.lane(1, 0, func() {
		b.loop()
		if rank == int(k.Root) {
			at := map[int]int{}
			for i, q := range b.others() {
				at[q] = i
			}
			b.last(c, b.ordered(in(c), func(q int) plan.Operand { return recv(at[q]) }), to{out(c)})
		} else {
			b.move(c, from{in(c)}, to{send(0)})
		}
		b.end()
	})
	return b.p
}

// directGather: B/n sent by every rank but the root.
func directGather(k plan.Key, rank int, g *graph.Graph) *plan.Program {
	b := rooted(k, rank, g, plan.PerRank, false)
	b.lane(1, 0, func() {
		b.loop()
		own := b.lit(0)
		if rank == int(k.Root) {
			b.move(own, from{in(own)}, to{out(b.lit(rank))})
			for i, q := range b.others() {
				b.move(b.lit(q), from{recv(i)}, to{out(b.lit(q))})
			}
		} else {
			b.move(own, from{in(own)}, to{send(0)})
		}
		b.end()
	})
	return b.p
}

// directScatter: (n-1)/n B sent by the root.
func directScatter(k plan.Key, rank int, g *graph.Graph) *plan.Program {
	b := rooted(k, rank, g, plan.PerRank, true)
	b.lane(1, 0, func() {
		b.loop()
		own := b.lit(0)
		if rank == int(k.Root) {
			for i, q := range b.others() {
				b.move(b.lit(q), from{in(b.lit(q))}, to{send(i)})
			}
			b.move(own, from{in(b.lit(rank))}, to{out(own)})
		} else {
			b.move(own, from{recv(0)}, to{out(own)})
		}
		b.end()
	})
	return b.p
}

// directSendRecv is one side of a transfer between two ranks.
func directSendRecv(k plan.Key, rank int, g *graph.Graph) *plan.Program {
	b := newBuilder(k, rank, g.NRanks, geom(k, plan.Whole, 1))
	b.conns(func(ch int) { b.conn(ch, int(k.Root), k.Send) })
	c := b.lit(0)
	b.lane(1, 0, func() {
		b.loop()
		if k.Send {
			b.move(c, from{in(c)}, to{send(0)})
		} else {
			b.move(c, from{recv(0)}, to{out(c)})
		}
		b.end()
	})
	return b.p
}

func init() {
	register(goccl.Direct, goccl.ReduceScatter, directReduceScatter)
	register(goccl.Direct, goccl.AllGather, directAllGather)
	register(goccl.Direct, goccl.AllToAll, directAllToAll)
	register(goccl.Direct, goccl.Broadcast, directBroadcast)
	register(goccl.Direct, goccl.Reduce, directReduce)
	register(goccl.Direct, goccl.Gather, directGather)
	register(goccl.Direct, goccl.Scatter, directScatter)
	register(goccl.Direct, goccl.SendRecv, directSendRecv)
}
