package check

import (
	"fmt"
	"sort"
	"strings"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/plan"
)

// wanted is what a block of an output must hold: byte i is the term at
// coordinate at+i.
type wanted struct {
	ranks []int // whose inputs
	at    int64
	sum   hash
	all   bool // the same expression on every rank
}

// want returns what block b of rank r's output must hold.
func (o *operation) want(r, b int) wanted {
	block := func(i int) int64 {
		if o.progs[r].Geom.Base == plan.Whole {
			return 0
		}
		return int64(i) * o.unit
	}
	one := func(q int, at int64) wanted { return wanted{ranks: []int{q}, at: at, sum: leaf(q).sum} }
	switch o.key.Coll {
	case goccl.AllGather, goccl.Gather:
		return one(b, 0)
	case goccl.AllToAll:
		return one(b, block(r))
	case goccl.Broadcast:
		return one(int(o.key.Root), 0)
	case goccl.Scatter:
		return one(int(o.key.Root), block(r))
	case goccl.SendRecv:
		return one(int(o.progs[r].Key.Root), 0)
	case goccl.ReduceScatter:
		return o.sumOf(block(r))
	}
	w := o.sumOf(0)
	w.all = o.key.Coll == goccl.AllReduce
	return w
}

// sumOf is the reduction of all inputs. Operations on windows are never scaled:
// a rank reads its peers' inputs and does not know their factors.
func (o *operation) sumOf(at int64) wanted {
	w := wanted{at: at}
	t := &terms{}
	for q := range o.progs {
		v := leaf(q)
		if o.key.Window == plan.WindowNone {
			v = t.wrap(v, tagPre)
		}
		w.ranks = append(w.ranks, q)
		w.sum = w.sum.plus(v.sum)
	}
	w.sum = t.wrap(value{sum: w.sum}, tagPost).sum
	return w
}

// results checks every output after all ranks have ended.
func (o *operation) results(t *terms) *Violation {
	first := -1
	for r, p := range o.progs {
		if p == nil {
			continue
		}
		_, outs := o.blocks(r)
		v := o.out[r]
		for b := range outs {
			w := o.want(r, b)
			base := v.off + int64(b)*o.unit
			if bad := v.s.each(base, o.unit, func(g *seg) *Violation { return o.compare(r, b, base, w, g, t) }); bad != nil {
				return bad
			}
			if !w.all {
				continue
			}
			if first < 0 {
				first = r
			}
			if bad := o.sameOrder(first, r, t); bad != nil {
				return bad
			}
		}
	}
	return nil
}

func (o *operation) compare(r, b int, base int64, w wanted, g *seg, t *terms) *Violation {
	if g.v.sum == w.sum && g.v.at-(g.off-base) == w.at {
		return nil
	}
	where := fmt.Sprintf("bytes %d to %d of block %d of the output", g.off-base, g.end-base, b)
	if g.v.nothing() {
		return atRank(Missing, r, "%s", where)
	}
	leaves := t.leaves(g.v)
	ranks := map[int]int{}
	moved := g.v.at-(g.off-base) != w.at
	for _, l := range leaves {
		ranks[l.rank]++
		moved = moved || l.rel != 0
	}
	k := Scaling
	exact := len(leaves) == len(w.ranks)
	for _, q := range w.ranks {
		exact = exact && ranks[q] == 1
	}
	switch {
	case !exact && len(leaves) == 1 && len(w.ranks) == 1:
		k = Misplaced
	case !exact:
		k = Contribution
	case moved:
		k = Misplaced
	}
	return atRank(k, r, "%s hold %s; want the inputs of %s", where, t.text(g.v, g.v.at-(g.off-base)-w.at), rankList(w.ranks))
}

func rankList(ranks []int) string {
	if len(ranks) == 1 {
		return fmt.Sprintf("rank %d", ranks[0])
	}
	return fmt.Sprintf("ranks %d to %d once each", ranks[0], ranks[len(ranks)-1])
}

// sameOrder compares the expressions of two ranks' outputs.
func (o *operation) sameOrder(a, b int, t *terms) *Violation {
	va, vb := o.out[a], o.out[b]
	var bad *Violation
	va.s.each(va.off, va.n, func(g *seg) *Violation {
		lo, hi := g.off-va.off, g.end-va.off
		for i := sort.Search(len(vb.s.segs), func(i int) bool { return vb.s.segs[i].end-vb.off > lo }); i < len(vb.s.segs); i++ {
			h := &vb.s.segs[i]
			if h.off-vb.off >= hi {
				return nil
			}
			if h.v.tree != g.v.tree {
				bad = atRank(Order, b, "bytes %d to %d are %s; on rank %d %s", max(lo, h.off-vb.off), min(hi, h.end-vb.off), t.text(h.v, 0), a, t.text(g.v, 0))
				return bad
			}
		}
		return nil
	})
	return bad
}

// found is a leaf of a term, and how far its coordinate is from the term's.
type found struct {
	rank int
	rel  int64
}

const maxLeaves = 1 << 12

// leaves lists the leaves of a term that was made with kids remembered; at most
// maxLeaves.
func (t *terms) leaves(v value) []found {
	var ls []found
	var walk func(v value, rel int64)
	walk = func(v value, rel int64) {
		n, ok := t.kids[v.tree]
		if !ok || len(ls) >= maxLeaves {
			return
		}
		if n.kind == tagLeaf {
			ls = append(ls, found{rank: n.rank, rel: rel})
			return
		}
		for _, k := range n.kids {
			walk(k, rel+k.at-n.kids[0].at)
		}
	}
	walk(v, 0)
	return ls
}

// text spells a term: xR is the input of rank R, with an offset in bytes where it
// is not at its place.
func (t *terms) text(v value, shift int64) string {
	const most = 240
	var b strings.Builder
	var walk func(v value, rel int64)
	walk = func(v value, rel int64) {
		n, ok := t.kids[v.tree]
		if !ok || b.Len() > most {
			return
		}
		switch n.kind {
		case tagLeaf:
			fmt.Fprintf(&b, "x%d", n.rank)
			if rel != 0 {
				fmt.Fprintf(&b, "%+d", rel)
			}
			return
		case tagPre:
			b.WriteString("pre")
		case tagPost:
			b.WriteString("post")
		}
		b.WriteString("(")
		for i, k := range n.kids {
			if i > 0 {
				b.WriteString(" ")
			}
			walk(k, rel+k.at-n.kids[0].at)
		}
		b.WriteString(")")
	}
	walk(v, shift)
	if b.Len() > most {
		return b.String()[:most] + "..."
	}
	return b.String()
}
