package fake

import (
	"fmt"
	"runtime"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/internal/simd"
	processgroup "github.com/goccl/goccl/process_group"
)

// collective runs the next collective when it is the turn of one on every rank.
// w.mu is held.
func (w *World) collective() bool {
	ops := make([]*processgroup.Op, len(w.ports))
	for r, p := range w.ports {
		j := p.head()
		if j == nil || j.next == len(j.coll) {
			return false
		}
		ops[r] = j.coll[j.next]
	}
	for r := range ops {
		if err := w.agree(ops, r); err != nil {
			w.spoil(err)
			return true
		}
	}
	run(ops)
	for _, p := range w.ports {
		p.head().next++
	}
	return true
}

// agree holds what rank r called against rank 0.
func (w *World) agree(ops []*processgroup.Op, r int) error {
	a, b := describe(ops[0]), describe(ops[r])
	if a == b && ops[0].Coll == goccl.AllToAll {
		for s := range ops {
			if from, to := sends(ops[s], len(ops))[r], receives(ops[r], len(ops))[s]; from != to {
				a, b = fmt.Sprintf("sends %d elements to rank %d", from, r), fmt.Sprintf("receives %d from it", to)
				return disagree(ops[r], s, r, a, b)
			}
		}
	}
	if a == b {
		return nil
	}
	return disagree(ops[0], 0, r, a, b)
}

func disagree(op *processgroup.Op, a, b int, didA, didB string) error {
	e := goccl.NewError(op.Name(), fmt.Errorf("%w: rank %d %s, rank %d %s", goccl.ErrMismatch, a, didA, b, didB))
	e.Seq = op.Seq
	e.Hint = "all ranks call the same collectives in the same order"
	return e
}

// describe says what a rank called, as far as the ranks must agree.
func describe(op *processgroup.Op) string {
	one := op.Src
	if op.Coll == goccl.Scatter || !one.DType.Valid() {
		one = op.Dst
	}
	text := "called " + op.Coll.String()
	switch op.Coll {
	case goccl.Barrier:
		return text
	case goccl.AllToAll:
		return text + " of " + one.DType.String()
	case goccl.ReduceScatter:
		one = op.Dst
	}
	text += fmt.Sprintf(" of %d %v", one.Count, one.DType)
	if op.Coll.Reduces() {
		kind := op.Redop.Kind().String()
		if _, scaled := op.Redop.Scale(); scaled {
			kind = "premulsum"
		}
		text += " " + kind
	}
	if op.Coll.Rooted() {
		text += fmt.Sprintf(" root %d", op.Root)
	}
	return text
}

// transfers matches sends and receives of the operations whose turn it is. w.mu
// is held.
func (w *World) transfers() bool {
	moved := false
	for r, p := range w.ports {
		j := p.head()
		if j == nil {
			continue
		}
		closed := make(map[int]bool) // peers whose first message must wait
		for i := range j.transfers {
			t := &j.transfers[i]
			if t.matched || t.Recv || closed[t.Peer] {
				continue
			}
			to := w.ports[t.Peer].head()
			if to == nil || !w.match(r, j, t, to) {
				closed[t.Peer] = true
				continue
			}
			if w.broken != nil {
				return true
			}
			moved = true
		}
	}
	return moved
}

// match looks for the receive of t, which rank r sends.
func (w *World) match(r int, from *job, t *transfer, to *job) bool {
	for i := range to.transfers {
		u := &to.transfers[i]
		if u.matched || !u.Recv || u.Peer != r {
			continue
		}
		if u.Buf.Count != t.Buf.Count || u.Buf.DType != t.Buf.DType || u.tag != t.tag {
			w.spoil(disagree(from.op, r, t.Peer, fmt.Sprintf("sends %d %v tag %d", t.Buf.Count, t.Buf.DType, t.tag),
				fmt.Sprintf("receives %d %v tag %d", u.Buf.Count, u.Buf.DType, u.tag)))
			return true
		}
		simd.Copy(u.Buf.Addr, t.Buf.Addr, t.Buf.Bytes())
		t.matched, u.matched = true, true
		from.left--
		to.left--
		return true
	}
	return false
}

// stage returns a copy of b.
func stage(b device.Buffer) device.Buffer {
	s := device.SliceOf(make([]uint64, (b.Bytes()+7)/8))
	s.Count, s.DType = b.Count, b.DType
	simd.Copy(s.Addr, b.Addr, b.Bytes())
	runtime.KeepAlive(s.Owner)
	return s
}

func put(dst, src device.Buffer) {
	simd.Copy(dst.Addr, src.Addr, src.Bytes())
	runtime.KeepAlive(src.Owner)
}

// run does one collective: it copies all inputs first, so that in place or not
// makes no difference.
func run(ops []*processgroup.Op) {
	n, first := len(ops), ops[0]
	in := make([]device.Buffer, n)
	for r, op := range ops {
		in[r] = stage(op.Src)
	}
	switch first.Coll {
	case goccl.AllReduce, goccl.Reduce, goccl.ReduceScatter:
		sum := combine(ops, in)
		for r, op := range ops {
			switch {
			case first.Coll == goccl.ReduceScatter:
				put(op.Dst, sum.Slice(r*op.Dst.Count, (r+1)*op.Dst.Count))
			case first.Coll == goccl.AllReduce || r == first.Root:
				put(op.Dst, sum)
			}
		}
	case goccl.Broadcast:
		for _, op := range ops {
			put(op.Dst, in[first.Root])
		}
	case goccl.AllGather:
		for _, op := range ops {
			gather(op, in)
		}
	case goccl.Gather:
		gather(ops[first.Root], in)
	case goccl.Scatter:
		parts := make([]device.Buffer, n)
		for r := range ops {
			parts[r] = stage(ops[first.Root].SrcList[r])
		}
		for r, op := range ops {
			put(op.Dst, parts[r])
		}
	case goccl.AllToAll:
		exchange(ops, in)
	}
}

func gather(op *processgroup.Op, in []device.Buffer) {
	for r := range in {
		if len(op.DstList) > 0 {
			put(op.DstList[r], in[r])
		} else {
			put(op.Dst.Slice(r*in[r].Count, (r+1)*in[r].Count), in[r])
		}
	}
}

func exchange(ops []*processgroup.Op, in []device.Buffer) {
	for r := range ops {
		from := 0
		for to, count := range sends(ops[r], len(ops)) {
			at := 0
			for _, c := range receives(ops[to], len(ops))[:r] {
				at += c
			}
			put(ops[to].Dst.Slice(at, at+count), in[r].Slice(from, from+count))
			from += count
		}
	}
}

func sends(op *processgroup.Op, n int) []int    { return counts(op.SendCounts, op.Src, n) }
func receives(op *processgroup.Op, n int) []int { return counts(op.RecvCounts, op.Dst, n) }

func counts(given []int, b device.Buffer, n int) []int {
	if len(given) > 0 {
		return given
	}
	even := make([]int, n)
	for r := range even {
		even[r] = b.Count / n
	}
	return even
}

// combine reduces the inputs in the order of ranks.
func combine(ops []*processgroup.Op, in []device.Buffer) device.Buffer {
	d, count, op := in[0].DType, in[0].Count, ops[0].Redop
	addrs := make([]uintptr, len(in))
	for r := range in {
		if f, scaled := ops[r].Redop.Scale(); scaled {
			simd.Scale(d, in[r].Addr, in[r].Addr, count, f)
		}
		addrs[r] = in[r].Addr
	}
	simd.Reduce(d, op, in[0].Addr, addrs, count)
	if op == goccl.Avg {
		simd.Divide(d, in[0].Addr, in[0].Addr, count, len(in))
	}
	runtime.KeepAlive(in)
	return in[0]
}
