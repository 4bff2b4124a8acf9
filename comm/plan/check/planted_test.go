package check

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/plan"
	"github.com/goccl/goccl/comm/plan/machine"
	"github.com/goccl/goccl/internal/golden"
)

// planted are faults in Programs, and the kind by which each must be caught.
var planted = []struct {
	name string
	base body
	n    int
	opt  Options
	edit func(ps []*plan.Program)
	want Kind
	says string
}{
	{name: "dropped step on all ranks", base: body{goccl.AllReduce, goccl.Ring}, n: 5, want: Contribution, says: "want the inputs of ranks 0 to 4",
		edit: func(ps []*plan.Program) {
			for _, p := range ps {
				// The sum goes one rank less far and the result one rank further.
				p.Code[find(p, plan.REP, 0)].Chunk = lit(p, 2)
				p.Code[find(p, plan.REP, 1)].Chunk = lit(p, 4)
				shift(p, find(p, plan.REP, 0)+3, 1)
				shift(p, find(p, plan.REP, 1)+1, 1)
			}
		}},
	{name: "dropped step on one rank", base: body{goccl.AllReduce, goccl.Ring}, n: 5, want: Unequal, says: "advances by",
		edit: func(ps []*plan.Program) { ps[2].Code[find(ps[2], plan.REP, 0)].Chunk = lit(ps[2], 2) }},
	{name: "swapped chunk", base: body{goccl.AllReduce, goccl.Ring}, n: 4, want: Misplaced, opt: Options{Units: []int64{1024}},
		edit: func(ps []*plan.Program) {
			p := ps[1] // its first chunk to send is another's
			p.Opnds[p.Code[find(p, plan.MOVE, 0)].Src].Chunk = lit(p, (1+4)%4)
		}},
	{name: "swapped block", base: body{goccl.AllToAll, goccl.Direct}, n: 4, want: Misplaced, says: "hold x",
		edit: func(ps []*plan.Program) {
			p := ps[1]
			a, b := &p.Opnds[p.Code[find(p, plan.MOVE, 4)].Dst], &p.Opnds[p.Code[find(p, plan.MOVE, 5)].Dst]
			a.Chunk, b.Chunk = b.Chunk, a.Chunk
		}},
	{name: "FIFO one slot short", base: body{goccl.AllReduce, goccl.TwoShot}, n: 3, opt: Options{Slots: 1}, want: ShortFIFO, says: "to free a slot",
		edit: func([]*plan.Program) {}},
	{name: "every slot needed", base: body{goccl.AllReduce, goccl.TwoShot}, n: 3, opt: Options{Slots: 2, Margin: true}, want: NoMargin,
		edit: func([]*plan.Program) {}},
	{name: "operand order differing on one rank", base: body{goccl.AllReduce, goccl.OneShot}, n: 4, want: Order, says: "on rank 0",
		edit: func(ps []*plan.Program) {
			p := ps[2]
			i := p.Code[find(p, plan.MOVE, 1)].Src
			p.Opnds[i], p.Opnds[i+1] = p.Opnds[i+1], p.Opnds[i]
		}},
	{name: "unequal advance", base: body{goccl.AllGather, goccl.Ring}, n: 4, want: Unequal, says: "advances by",
		edit: func(ps []*plan.Program) { ps[3].Code[find(ps[3], plan.REP, 0)].Chunk = lit(ps[3], 3) }},
	{name: "unequal signal", base: body{goccl.AllReduce, goccl.TwoShot}, n: 3, want: Unequal, says: "signal word",
		edit: func(ps []*plan.Program) { ps[1].Code[find(ps[1], plan.SIGNAL, 0)].Delta = 2 }},
	{name: "contribution twice", base: body{goccl.ReduceScatter, goccl.Direct}, n: 3, want: Contribution,
		edit: func(ps []*plan.Program) {
			p := ps[0]
			last := find(p, plan.MOVE, 2)
			p.Opnds = append(p.Opnds, p.Opnds[p.Code[last].Src:p.Code[last].Src+3]...)
			p.Opnds = append(p.Opnds, p.Opnds[p.Code[last].Src])
			p.Code[last].Src, p.Code[last].NSrc = uint16(len(p.Opnds)-4), 4
			p.Code[last].Flags = plan.Post
		}},
	{name: "not scaled", base: body{goccl.Reduce, goccl.Ring}, n: 3, want: Scaling, says: "post((",
		edit: func(ps []*plan.Program) { ps[1].Code[find(ps[1], plan.MOVE, 0)].Flags = 0 }},
	{name: "divided twice", base: body{goccl.AllReduce, goccl.Tree}, n: 3, want: Scaling, says: "post(",
		edit: func(ps []*plan.Program) {
			for _, p := range ps {
				for pc := range p.Code {
					if p.Code[pc].Op == plan.MOVE {
						p.Code[pc].Flags |= plan.Post
					}
				}
			}
		}},
	{name: "output not written", base: body{goccl.AllGather, goccl.Direct}, n: 2, want: Missing,
		edit: func(ps []*plan.Program) { // the own block goes out but not into the output
			in := &ps[0].Code[find(ps[0], plan.MOVE, 0)]
			in.Dst, in.NDst = in.Dst+1, in.NDst-1
		}},
	{name: "receive before send", base: body{goccl.AllReduce, goccl.Ring}, n: 2, want: Deadlock, says: "waits for rank",
		edit: func(ps []*plan.Program) {
			for _, p := range ps {
				a, b := find(p, plan.MOVE, 0), find(p, plan.MOVE, 1)
				p.Code[a], p.Code[b] = p.Code[b], p.Code[a]
			}
		}},
	{name: "another chunk's length", base: body{goccl.AllReduce, goccl.Ring}, n: 3, want: Length, says: "expected",
		edit: func(ps []*plan.Program) { shift(ps[0], find(ps[0], plan.MOVE, 0), 1) }},
	{name: "slot too small", base: body{goccl.Broadcast, goccl.Direct}, n: 2, opt: Options{SlotBytes: 64}, want: Overflow, says: "into a slot of 64",
		edit: func([]*plan.Program) {}},
	{name: "chunk that is not there", base: body{goccl.AllToAll, goccl.Direct}, n: 2, want: Bounds,
		edit: func(ps []*plan.Program) { ps[0].Opnds[0].Chunk = lit(ps[0], 2) }},
	{name: "flag says rendezvous", base: body{goccl.Broadcast, goccl.Ring}, n: 3, want: Rendezvous,
		edit: func(ps []*plan.Program) { setRendezvous(ps, true) }},
	{name: "flag denies rendezvous", base: body{goccl.AllReduce, goccl.Ring}, n: 3, want: Rendezvous,
		edit: func(ps []*plan.Program) { setRendezvous(ps, false) }},
	{name: "endless", base: body{goccl.SendRecv, goccl.Direct}, n: 2, opt: Options{MaxSteps: 1000}, want: Runaway,
		edit: func(ps []*plan.Program) {
			p := ps[0]
			p.Code = append(p.Code, plan.Instr{Op: plan.REP, Chunk: lit(p, 1<<30)}, plan.Instr{Op: plan.POSTL, Delta: 1}, plan.Instr{Op: plan.END})
			p.Sems, p.Lanes[0].Hi = 1, uint16(len(p.Code))
		}},
	{name: "semaphore never taken", base: body{goccl.SendRecv, goccl.Direct}, n: 2, want: Unequal, says: "semaphore",
		edit: func(ps []*plan.Program) {
			p := ps[0]
			p.Code = append(p.Code, plan.Instr{Op: plan.POSTL, Delta: 1})
			p.Sems, p.Lanes[0].Hi = 1, uint16(len(p.Code))
		}},
	{name: "operand out of range", base: body{goccl.Reduce, goccl.Direct}, n: 2, want: Malformed,
		edit: func(ps []*plan.Program) { ps[0].Code[1].Src = 999 }},
	{name: "another root on one rank", base: body{goccl.Reduce, goccl.Direct}, n: 2, want: Disagreement,
		edit: func(ps []*plan.Program) { ps[1].Key.Root = 1 }},
	{name: "another protocol at one end", base: body{goccl.Reduce, goccl.Direct}, n: 2, want: Unmatched,
		edit: func(ps []*plan.Program) { ps[1].Conns[0].Proto = goccl.Simple }},
}

func setRendezvous(ps []*plan.Program, v bool) {
	for _, p := range ps {
		p.Rendezvous = v
	}
}

// shift adds d to every chunk expression of one MOVE.
func shift(p *plan.Program, pc, d int) {
	moved := func(e uint16) uint16 {
		x := p.Exprs[e]
		x.A += int32(d)
		p.Exprs = append(p.Exprs, x)
		return uint16(len(p.Exprs) - 1)
	}
	in := &p.Code[pc]
	in.Chunk = moved(in.Chunk)
	for i := in.Src; i < in.Dst+uint16(in.NDst); i++ {
		if k := p.Opnds[i].Kind; k == plan.In || k == plan.Out {
			p.Opnds[i].Chunk = moved(p.Opnds[i].Chunk)
		}
	}
}

func TestPlantedFaults(t *testing.T) {
	var texts strings.Builder
	ran := 0
	for _, f := range planted {
		t.Run(f.name, func(t *testing.T) {
			k := key(f.base.coll, f.base.algo, goccl.LL, 1, 0, 2)
			mapped := f.name == "unequal signal"
			if mapped {
				k.Window = plan.WindowBoth
			}
			ps := build(t, k, shape(t, f.n, 1, mapped))
			fine := f.opt
			fine.Slots, fine.SlotBytes, fine.Margin = 0, 0, false
			fine.MaxSteps = 0
			require.NoError(t, Check(ps, fine), "without the fault")
			f.edit(ps)
			err := Check(ps, f.opt)
			require.Equal(t, f.want, kindOf(t, err), "%v", err)
			require.ErrorContains(t, err, string(f.want))
			require.ErrorContains(t, err, f.says)
			fmt.Fprintf(&texts, "%s\n%v\n\n", f.name, err)
			ran++
		})
	}
	if ran < len(planted) {
		return // some were left out by -run, or failed
	}
	golden.File(t, "testdata/violations.txt", texts.String())
}

// leaky is a domain whose FIFOs break their promise, seen by the checker itself.
type leaky struct {
	*agent
	early bool // slots are given back before they are read
}

// Move breaks the order of reads and releases.
func (d leaky) Move(l *machine.Lane, m *machine.Move) bool {
	before := d.clock.copyTo(nil)
	before[d.thread]--
	if !d.agent.Move(l, m) {
		return false
	}
	for i := range m.Srcs {
		if o := &m.Srcs[i]; d.early && o.Kind == plan.FifoRecv {
			f := d.fifos[o.Conn]
			f.freed[(f.released-1)%f.depth] = before
		}
	}
	return true
}

// TestMissingCredit takes the credit of the FIFOs away in three ways.
func TestMissingCredit(t *testing.T) {
	ps := build(t, key(goccl.Broadcast, goccl.Ring, goccl.LL, 1, 0, 1), shape(t, 3, 1, false))
	long := Models(ps[0], Options{})
	run := func(prepare func(w *world)) *Violation {
		w := newWorld(Options{}.filled(), []*operation{newOperation(ps, long[len(long)-1], OutOfPlace)}, &terms{})
		prepare(w)
		v, _ := w.prove()
		return v
	}
	slots := func(w *world, memory, credit int) {
		for r, p := range ps {
			for i := range p.Conns {
				f := w.fifo(0, &p.Conns[i], r)
				f.slots, f.depth, f.freed = make([]fifoSlot, memory), credit, make([]clock, credit)
			}
		}
	}
	require.Nil(t, run(func(w *world) { slots(w, 4, 4) }))
	for name, v := range map[string]*Violation{
		"memory of one slot less":          run(func(w *world) { slots(w, 3, 4) }),
		"no wait for credit":               run(func(w *world) { slots(w, 4, 1000) }),
		"released before it has been read": run(func(w *world) { w.wrap = func(a *agent) machine.Domain { return leaky{a, true} } }),
	} {
		require.NotNil(t, v, name)
		require.Equal(t, SlotReuse, v.Kind, "%s: %v", name, v)
	}
	require.Nil(t, run(func(w *world) { w.wrap = func(a *agent) machine.Domain { return leaky{a, false} } }))
}
