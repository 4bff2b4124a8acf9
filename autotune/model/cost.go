package model

import "github.com/goccl/goccl"

// work is what an operation does. For each kind there is what the rank on the
// critical path does (mine) and what all ranks do together (all): ranks that
// outnumber the cores of their host wait for each other's work.
type work struct {
	op        float64 // Programs through the lane machine
	fused     float64 // or through the fused form
	steps     float64 // waits for a message, one after another
	meets     float64
	mine, all effort
	slots     float64 // bytes that the slots of a rank's connections hold at a time
	touched   float64 // bytes of a rank's own buffers
}

// effort counts messages, bytes copied, and bytes of operands and results of
// reductions.
type effort struct{ messages, copied, reduced float64 }

func (e effort) times(f float64) effort {
	return effort{e.messages * f, e.copied * f, e.reduced * f}
}

// Predict returns the time of one operation in microseconds, from its call to
// its end on all ranks.
//
//	time = begin + steps x wait + messages x post + bytes copied x copy + bytes reduced x reduce
//	     + what passes slots, and what is touched, beyond the cache
//
// Steps and bytes are those that stand beside the algorithms in package algo.
func Predict(k *Constants, q *Query, c Choice) float64 {
	return dot(Terms(q, c, k.Cache), k.Vector())
}

// dot rounds every product, so that no machine fuses it with the sum.
func dot(a, b [NumTerms]float64) float64 {
	t := 0.0
	for i := range a {
		t += float64(a[i] * b[i])
	}
	return t
}

// Terms returns how often each constant counts, in the order of
// Constants.Vector, with a cache of the given bytes.
func Terms(q *Query, c Choice, cache int64) [NumTerms]float64 {
	const mib = 1 << 20
	if q.Ranks < 2 {
		return [NumTerms]float64{1, 6: float64(q.Bytes) / mib}
	}
	w := workOf(q, c)
	load := float64(q.RanksPerHost) / float64(max(q.Cores, 1))
	share := load / float64(q.Ranks) // of what all ranks do, what each core of a host does
	messages := max(w.mine.messages, w.all.messages*share)
	copied := max(w.mine.copied, w.all.copied*share)
	reduced := max(w.mine.reduced, w.all.reduced*share)
	near := float64(max(cache, 1))
	spill := copied * min(max(w.slots/near-1, 0), 1)
	far := max(w.touched-near, 0) * max(load, 1)
	t := [NumTerms]float64{0: w.op * max(load, 1), 1: w.fused * max(load, 1), 5: messages, 6: copied / mib, 7: reduced / mib, 8: spill / mib, 9: far / mib, 10: w.meets}
	switch {
	case load > 1:
		t[4] = w.steps * load
	case c.Proto == goccl.LL:
		t[2] = w.steps
	default:
		t[2], t[3] = w.steps, w.steps
	}
	return t
}

// workOf counts what c does for q.
func workOf(q *Query, c Choice) work {
	n, b := float64(q.Ranks), float64(q.Bytes)
	unit, chunk := q.unit(c), q.chunk(c)
	r := run{n: n, b: b, part: b / n, iters: float64(max(1, ceil(unit, chunk))), first: float64(min(unit, chunk)), channels: float64(max(c.Channels, 1))}
	var w work
	switch {
	case c.Algo == goccl.OneShot:
		w = r.oneShot(q)
	case q.windowed(c.Algo):
		w = r.window()
	case c.Algo == goccl.TwoShot:
		w = r.twoShot()
	case c.Algo == goccl.Tree:
		w = r.tree(q.Ranks)
	case c.Algo == goccl.Ring:
		w = r.ring(q.Coll)
	default:
		w = r.direct(q.Coll)
	}
	if w.fused == 0 {
		w.op = 1
	}
	w.touched = r.touched(q.Coll)
	return w
}
