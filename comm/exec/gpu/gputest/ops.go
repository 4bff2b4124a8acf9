package gputest

import (
	"math/rand/v2"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/exec/gpu"
	"github.com/goccl/goccl/comm/plan"
	"github.com/goccl/goccl/comm/plan/algo"
)

// KeyOf is the key of a collective with as large a chunk as the layout allows.
func KeyOf(l gpu.Layout, c goccl.Collective, a goccl.Algorithm, p goccl.Protocol, d goccl.DType) plan.Key {
	k := plan.Key{Coll: c, Algo: a, Proto: p, DType: d, Channels: 2}
	fifo, scratch := l.MaxChunk(p)
	k.Chunk = uint32(fifo)
	if a == goccl.OneShot {
		k.Chunk = uint32(scratch)
	}
	return k
}

// Cases calls f for every collective, algorithm and protocol that there is, with
// sums of f32 and bf16 in turn, and copies of other types.
func Cases(l gpu.Layout, f func(k plan.Key)) {
	sums := []goccl.DType{goccl.F32, goccl.BF16}
	copies := []goccl.DType{goccl.I8, goccl.F16, goccl.F64, goccl.F8E4M3, goccl.U32}
	i := 0
	for c := goccl.AllReduce; c.Valid(); c++ {
		for _, a := range algo.Algorithms(c) {
			for _, p := range []goccl.Protocol{goccl.LL, goccl.Simple} {
				i++
				d := copies[i%len(copies)]
				if c.Reduces() {
					d = sums[i%len(sums)]
				}
				if c == goccl.Barrier {
					d = goccl.U8
				}
				f(KeyOf(l, c, a, p, d))
				if c.Reduces() {
					f(KeyOf(l, c, a, p, sums[(i+1)%len(sums)]))
				}
			}
		}
	}
	k := KeyOf(l, goccl.AllReduce, goccl.TwoShot, goccl.Simple, goccl.F32)
	k.Window, k.Chunk = plan.WindowBoth, 1<<30
	f(k)
	k.DType, k.Chunk = goccl.BF16, 1024
	f(k)
}

// Sizes are odd numbers of elements for a key, up to a few iterations.
func Sizes(k plan.Key) []int {
	size := k.DType.Size()
	grain := int(algo.Grain(k.Proto)) / size
	chunk := min(int(k.Chunk), 2048) / size
	if k.Coll == goccl.Barrier {
		return []int{0}
	}
	if k.Algo == goccl.OneShot { // the host serves one chunk in all
		return []int{0, 1, 3, grain - 1, grain + 1, chunk}
	}
	return []int{0, 1, 3, grain - 1, grain + 1, chunk + 5, 5*chunk + 7}
}

// Random makes an operation of k: odd sizes and addresses, in place or not, plain,
// averaged or scaled.
func Random(k plan.Key, n int, threads []int, rng *rand.Rand) Op {
	s := Sizes(k)
	o := Op{Key: k, Elems: s[rng.IntN(len(s))], Threads: threads[rng.IntN(len(threads))]}
	size := k.DType.Size()
	if rng.IntN(2) == 0 {
		o.In, o.Out = rng.IntN(16/size)*size, rng.IntN(16/size)*size
	}
	if k.Coll.Rooted() {
		o.Key.Root = int32(rng.IntN(n))
	}
	o.From = rng.IntN(n)
	o.To = (o.From + 1 + rng.IntN(n-1)) % n
	o.InPlace = rng.IntN(3) == 0 && k.Coll != goccl.AllToAll && k.Coll != goccl.SendRecv
	if k.Coll.Reduces() {
		switch rng.IntN(4) {
		case 0:
			o.Key.Op = goccl.Avg
		case 1:
			if k.Window == plan.WindowNone {
				o.Key.Op, o.Scale = goccl.PreMulSum(0).Kind(), 0.37
			}
		}
	}
	return o
}

// TwoLanes sends by one lane and receives by another that it lets go on, chunk by
// chunk, in slices.
func TwoLanes(k plan.Key, rank, n int) *plan.Program {
	p := &plan.Program{Key: k, Rank: rank, NRanks: n, Sems: 1, Geom: plan.Geom{Base: plan.Whole, Grain: algo.Grain(k.Proto),
		ChunkBytes: int64(k.Chunk), Slices: 2, D: 1},
		Exprs: []plan.Expr{{P: -1, T: -1}},
		Opnds: []plan.Operand{{Kind: plan.In}, {Kind: plan.FifoSend, Conn: 0}, {Kind: plan.FifoRecv, Conn: 1}, {Kind: plan.Out}},
		Code: []plan.Instr{
			{Op: plan.LOOP},
			{Op: plan.MOVE, NSrc: 1, NDst: 1, Src: 0, Dst: 1},
			{Op: plan.POSTL, Delta: 2},
			{Op: plan.END},
			{Op: plan.LOOP},
			{Op: plan.WAITL, Delta: 2},
			{Op: plan.MOVE, NSrc: 1, NDst: 1, Src: 2, Dst: 3},
			{Op: plan.END},
		},
		Lanes: []plan.Lane{{Mod: 1, Lo: 0, Hi: 4}, {Mod: 1, Lo: 4, Hi: 8}}}
	for range k.Channels {
		lo := uint16(len(p.Conns))
		p.Conns = append(p.Conns, plan.Conn{Peer: int32((rank + 1) % n), Send: true, Proto: k.Proto}, plan.Conn{Peer: int32((rank + n - 1) % n), Proto: k.Proto})
		p.Rows = append(p.Rows, plan.Row{ConnLo: lo, ConnN: 2})
	}
	return p
}
