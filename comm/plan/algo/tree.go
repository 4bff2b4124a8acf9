package algo

import (
	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/graph"
	"github.com/goccl/goccl/comm/plan"
)

// treeAllReduce sums up a binary tree to its root and sends the result down
// again, pipelined by chunks. Channel c uses tree c mod 2 of a double binary
// tree: a rank that is inner in one is a leaf in the other, so with two
// channels every rank sends about 2 B at full bandwidth.
//
// 2 log2(n) steps; 2 B sent by an inner rank, B by a leaf. Going up and coming
// down are two lanes, so that both directions of a link are busy.
func treeAllReduce(k plan.Key, rank int, g *graph.Graph) *plan.Program {
	b := newBuilder(k, rank, g.NRanks, geom(k, plan.Whole, 1))
	trees := min(len(g.Trees), int(k.Channels))
	b.conns(func(ch int) { treeConns(b, ch, rank, g.Trees[ch%2]) })
	for t := range trees {
		tree := g.Trees[t]
		kids := len(tree.Children[rank])
		root := tree.Parent[rank] < 0
		// Connectors: 0..kids-1 from the children, then kids to the parent,
		// kids+1 from the parent (not at the root), then one to each child.
		down := kids
		if !root {
			down += 2
		}
		b.lane(trees, t, func() { treeUp(b, kids, down, root) })
		b.lane(trees, t, func() { treeDown(b, kids, down, root) })
	}
	b.p.Rendezvous = true
	return b.p
}

func treeConns(b *builder, ch, rank int, t graph.Tree) {
	for _, c := range t.Children[rank] {
		b.conn(ch, c, false)
	}
	if p := t.Parent[rank]; p >= 0 {
		b.conn(ch, p, true)
		b.conn(ch, p, false)
	}
	for _, c := range t.Children[rank] {
		b.conn(ch, c, true)
	}
}

// treeUp adds this rank's input to what its children send. The root has the
// result and begins the way down.
func treeUp(b *builder, kids, down int, root bool) {
	c := b.lit(0)
	b.loop()
	src := from{in(c)}
	for i := range kids {
		src = append(src, recv(i))
	}
	switch {
	case root:
		dst := to{out(c)}
		for i := range kids {
			dst = append(dst, send(down+i))
		}
		b.last(c, src, dst)
	default:
		b.move(c, src, to{send(kids)})
	}
	b.end()
}

// treeDown passes the result on.
func treeDown(b *builder, kids, down int, root bool) {
	if root {
		return
	}
	c := b.lit(0)
	b.loop()
	dst := to{out(c)}
	for i := range kids {
		dst = append(dst, send(down+i))
	}
	b.move(c, from{recv(kids + 1)}, dst)
	b.end()
}

func init() { register(goccl.Tree, goccl.AllReduce, treeAllReduce) }
