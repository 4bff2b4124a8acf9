package algo

import (
	"slices"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/graph"
	"github.com/goccl/goccl/comm/plan"
)

// Rings: every rank talks to two neighbours only.
//
//	AllReduce      2(n-1) steps, 2(n-1)/n B sent by each rank
//	ReduceScatter   n-1 steps,   (n-1)/n B
//	AllGather       n-1 steps,   (n-1)/n B
//	Broadcast       n-1 hops, pipelined by chunks, B
//	Reduce          n-1 hops, pipelined by chunks, B

// ringBuilder sets up the connectors (0 from the previous rank, 1 to the next),
// the rank's place on the ring (row 0) and the table from places to ranks.
func ringBuilder(k plan.Key, rank int, g *graph.Graph, geom plan.Geom) *builder {
	b := newBuilder(k, rank, g.NRanks, geom)
	n := g.NRanks
	at := slices.Index(g.Ring, rank)
	b.conns(func(ch int) {
		b.conn(ch, g.Ring[(at+n-1)%n], false)
		b.conn(ch, g.Ring[(at+1)%n], true)
		b.p.Rows[ch].P[0] = int32(at)
	})
	table := make([]uint32, n)
	for i, r := range g.Ring {
		table[i] = uint32(r)
	}
	b.p.Tables = [][]uint32{table}
	return b
}

const (
	noTable = -1
	byRank  = 0 // through the table: place on the ring to rank
)

func ringAllReduce(k plan.Key, rank int, g *graph.Graph) *plan.Program {
	n := g.NRanks
	b := ringBuilder(k, rank, g, geom(k, plan.Whole, n))
	b.lane(1, 0, func() {
		b.loop()
		c := b.pos(n-1, 0, noTable)
		b.move(c, from{in(c)}, to{send(1)})
		b.rep(n-2, func() {
			c := b.pos(2*n-2, -1, noTable)
			b.move(c, from{recv(0), in(c)}, to{send(1)})
		})
		c = b.pos(0, 0, noTable)
		b.last(c, from{recv(0), in(c)}, to{out(c), send(1)})
		b.rep(n-2, func() {
			c := b.pos(2*n-1, -1, noTable)
			b.move(c, from{recv(0)}, to{out(c), send(1)})
		})
		c = b.pos(1, 0, noTable)
		b.move(c, from{recv(0)}, to{out(c)})
		b.end()
	})
	b.p.Rendezvous = true
	return b.p
}

func ringReduceScatter(k plan.Key, rank int, g *graph.Graph) *plan.Program {
	n := g.NRanks
	b := ringBuilder(k, rank, g, geom(k, plan.PerRank, 1))
	b.lane(1, 0, func() {
		b.loop()
		c := b.pos(n-1, 0, byRank)
		b.move(c, from{in(c)}, to{send(1)})
		b.rep(n-2, func() {
			c := b.pos(2*n-2, -1, byRank)
			b.move(c, from{recv(0), in(c)}, to{send(1)})
		})
		c = b.pos(0, 0, byRank)
		b.last(c, from{recv(0), in(c)}, to{out(b.lit(0))})
		b.end()
	})
	b.p.Rendezvous = true
	return b.p
}

func ringAllGather(k plan.Key, rank int, g *graph.Graph) *plan.Program {
	n := g.NRanks
	b := ringBuilder(k, rank, g, geom(k, plan.PerRank, 1))
	b.lane(1, 0, func() {
		b.loop()
		c := b.pos(0, 0, byRank)
		b.move(c, from{in(b.lit(0))}, to{out(c), send(1)})
		b.rep(n-2, func() {
			c := b.pos(2*n-1, -1, byRank)
			b.move(c, from{recv(0)}, to{out(c), send(1)})
		})
		c = b.pos(1, 0, byRank)
		b.move(c, from{recv(0)}, to{out(c)})
		b.end()
	})
	b.p.Rendezvous = true
	return b.p
}

// chain sets up the connectors of a line of ranks and returns this rank's place
// on it: conn 0 from the one before, then one to the one after.
func chain(k plan.Key, rank int, order []int) (b *builder, at int) {
	b = newBuilder(k, rank, len(order), geom(k, plan.Whole, 1))
	at = slices.Index(order, rank)
	b.conns(func(ch int) {
		if at > 0 {
			b.conn(ch, order[at-1], false)
		}
		if at < len(order)-1 {
			b.conn(ch, order[at+1], true)
		}
	})
	return b, at
}

func ringBroadcast(k plan.Key, rank int, g *graph.Graph) *plan.Program {
	n := g.NRanks
	first := slices.Index(g.Ring, int(k.Root))
	order := slices.Concat(g.Ring[first:], g.Ring[:first])
	b, at := chain(k, rank, order)
	b.lane(1, 0, func() {
		b.loop()
		c := b.lit(0)
		switch at {
		case 0:
			b.move(c, from{in(c)}, to{send(0), out(c)})
		case n - 1:
			b.move(c, from{recv(0)}, to{out(c)})
		default:
			b.move(c, from{recv(0)}, to{out(c), send(1)})
		}
		b.end()
	})
	return b.p
}

func ringReduce(k plan.Key, rank int, g *graph.Graph) *plan.Program {
	n := g.NRanks
	after := slices.Index(g.Ring, int(k.Root)) + 1
	order := slices.Concat(g.Ring[after:], g.Ring[:after]) // the root is last
	b, at := chain(k, rank, order)
	b.lane(1, 0, func() {
		b.loop()
		c := b.lit(0)
		switch at {
		case 0:
			b.move(c, from{in(c)}, to{send(0)})
		case n - 1:
			b.last(c, from{recv(0), in(c)}, to{out(c)})
		default:
			b.move(c, from{recv(0), in(c)}, to{send(1)})
		}
		b.end()
	})
	return b.p
}

func init() {
	register(goccl.Ring, goccl.AllReduce, ringAllReduce)
	register(goccl.Ring, goccl.ReduceScatter, ringReduceScatter)
	register(goccl.Ring, goccl.AllGather, ringAllGather)
	register(goccl.Ring, goccl.Broadcast, ringBroadcast)
	register(goccl.Ring, goccl.Reduce, ringReduce)
}
