package check

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/plan"
)

// TestWindowRaces takes the meetings of a window operation apart: each half of
// each is needed.
func TestWindowRaces(t *testing.T) {
	k := key(goccl.AllReduce, goccl.TwoShot, goccl.LL, 1, 0, 1)
	k.Window = plan.WindowBoth
	good := build(t, k, shape(t, 3, 1, true))
	require.NoError(t, Check(good, Options{}))
	loop := find(good[0], plan.LOOP, 0)
	for name, edit := range map[string]func(p *plan.Program){
		"last meeting before the reads": func(p *plan.Program) {
			// The loop goes last: what says "I have read" is said before reading.
			body := append([]plan.Instr(nil), p.Code[loop:loop+3]...)
			copy(p.Code[loop:], p.Code[loop+3:])
			copy(p.Code[len(p.Code)-3:], body)
		},
		"no wait for the last ring": func(p *plan.Program) { dropWaits(p, loop, true) },
		"no wait for the first":     func(p *plan.Program) { dropWaits(p, loop, false) },
	} {
		ps := cloneAll(good)
		for _, p := range ps {
			edit(p)
		}
		err := Check(ps, Options{})
		require.Equal(t, Race, kindOf(t, err), "%s: %v", name, err)
	}
}

// dropWaits moves the waits of one meeting to where they order nothing: the
// first to the end, the last to the start of the next operation, that is, away
// (with the rings, so that the counts stay equal).
func dropWaits(p *plan.Program, loop int, last bool) {
	var kept, late []plan.Instr
	for pc, in := range p.Code {
		switch {
		case last && pc > loop+2:
		case !last && pc < loop && in.Op == plan.WAIT:
			late = append(late, in)
		default:
			kept = append(kept, in)
		}
	}
	p.Code = append(kept, late...)
	p.Lanes[0].Hi = uint16(len(p.Code))
}

func TestInPlaceOverwrite(t *testing.T) {
	k := key(goccl.AllReduce, goccl.TwoShot, goccl.LL, 1, 0, 1)
	ps := build(t, k, shape(t, 4, 1, false))
	for _, p := range ps {
		// Before anything else: out[0] = in[1]. Out of place it does no harm, the
		// result comes later.
		p.Opnds = append(p.Opnds, plan.Operand{Kind: plan.In, Chunk: lit(p, 1)}, plan.Operand{Kind: plan.Out, Chunk: lit(p, 0)})
		n := uint16(len(p.Opnds))
		first := plan.Instr{Op: plan.MOVE, NSrc: 1, NDst: 1, Src: n - 2, Dst: n - 1, Chunk: lit(p, 1)}
		p.Code = append([]plan.Instr{p.Code[0], first}, p.Code[1:]...)
		p.Lanes[0].Hi++
	}
	opt := Options{Units: []int64{256, 300, 1024}, Aliases: []Alias{OutOfPlace}}
	require.NoError(t, Check(ps, opt))
	for _, a := range []Alias{InPlace, Mixed} {
		opt.Aliases = []Alias{a}
		err := Check(ps, opt)
		require.Equal(t, Overwritten, kindOf(t, err), "%v", err)
		require.ErrorContains(t, err, a.String())
	}
}

// bankedBroadcast is a broadcast through scratch: the root hands its data out and
// is told nothing.
func bankedBroadcast(n int) []*plan.Program {
	k := key(goccl.Broadcast, goccl.OneShot, goccl.LL, 1, 0, 1)
	g := plan.Geom{Grain: 64, ChunkBytes: 64, Slices: 1, D: 1}
	var ps []*plan.Program
	for r := range n {
		s := newScript(k, r, n, g)
		s.lane(func() {
			if r > 0 {
				s.move(0, 0, ops(s.scratch(0)), ops(s.out(0)))
				return
			}
			dst := ops(s.out(0))
			for q := 1; q < n; q++ {
				dst = append(dst, s.peerScratch(q))
			}
			s.move(0, 0, ops(s.in(0)), dst)
		})
		ps = append(ps, s.p)
	}
	return ps
}

func TestBroadcastOnBankedRegion(t *testing.T) {
	ps := bankedBroadcast(3)
	require.Equal(t, Banked, kindOf(t, Check(ps, Options{})))
	setRendezvous(ps, true)
	err := Check(ps, Options{})
	require.Equal(t, Banked, kindOf(t, err))
	require.ErrorContains(t, err, "a bank can be written again while it is read")
	err = CheckSequence([][]*plan.Program{ps, ps, ps}, Options{})
	require.Equal(t, BankReuse, kindOf(t, err), "%v", err)
}

func TestBankReusedTooEarly(t *testing.T) {
	ps := build(t, key(goccl.AllReduce, goccl.OneShot, goccl.LL, 1, 0, 1), shape(t, 3, 1, true))
	long := int64(64)
	seq := func(banks int) *Violation {
		var os []*operation
		for range 3 {
			os = append(os, newOperation(ps, long, OutOfPlace))
		}
		w := newWorld(Options{}.filled(), os, &terms{})
		w.banks = banks
		v, _ := w.prove()
		return v
	}
	require.Nil(t, seq(plan.Banks))
	require.NotNil(t, seq(1))
	require.Equal(t, BankReuse, seq(1).Kind)

	// Within one operation: a one-shot that loops writes the slots of its first
	// iteration again.
	for _, p := range ps {
		p.Code = append([]plan.Instr{{Op: plan.LOOP}}, append(p.Code, plan.Instr{Op: plan.END})...)
		p.Lanes[0].Hi += 2
	}
	require.NoError(t, Check(ps, Options{Units: []int64{0, 4, 64}}))
	require.Equal(t, BankReuse, kindOf(t, Check(ps, Options{Units: []int64{128}})))
}

func TestScratchSlotOfAnotherRank(t *testing.T) {
	ps := bankedBroadcast(3)
	p := ps[0]
	p.Opnds[p.Code[0].Dst+1].Slot = lit(p, 1)
	require.Equal(t, Race, kindOf(t, Check(ps, Options{})))
}

func TestBarrierPassedEarly(t *testing.T) {
	ps := build(t, key(goccl.Broadcast, goccl.Direct, goccl.LL, 1, 0, 1), shape(t, 3, 1, false))
	for _, p := range ps {
		p.Key.Coll = goccl.Barrier
	}
	require.Equal(t, Barrier, kindOf(t, Check(ps, Options{})))
	require.NoError(t, Check(build(t, key(goccl.Barrier, goccl.OneShot, goccl.LL, 1, 0, 1), shape(t, 3, 1, false)), Options{}))
}

// exchange is an AllReduce of two ranks in two lanes: one sends the input, one
// receives and writes the result. In place the second must wait for the first.
func exchange(ordered bool) []*plan.Program {
	k := key(goccl.AllReduce, goccl.Direct, goccl.LL, 1, 0, 1)
	g := plan.Geom{Grain: 64, ChunkBytes: 64, Slices: 1, D: 1}
	var ps []*plan.Program
	for r := range 2 {
		s := newScript(k, r, 2, g)
		s.p.Rendezvous = true
		q := int32(1 - r)
		s.conns(plan.Conn{Peer: q, Send: true}, plan.Conn{Peer: q})
		s.lane(func() {
			s.op(plan.LOOP)
			s.move(0, plan.Pre, ops(s.in(0)), ops(send(0)))
			if ordered {
				s.word(plan.POSTL, 0)
			}
			s.op(plan.END)
		})
		s.lane(func() {
			s.op(plan.LOOP)
			if ordered {
				s.word(plan.WAITL, 0)
			}
			srcs := ops(s.in(0), recv(1))
			if r == 1 {
				srcs = ops(recv(1), s.in(0))
			}
			s.move(0, plan.Pre|plan.Post, srcs, ops(s.out(0)))
			s.op(plan.END)
		})
		if ordered {
			s.p.Sems = 1
		}
		ps = append(ps, s.p)
	}
	return ps
}

func TestLanesNeedSemaphores(t *testing.T) {
	require.NoError(t, Check(exchange(true), Options{}))
	require.NoError(t, Check(exchange(false), Options{Aliases: []Alias{OutOfPlace}}))
	err := Check(exchange(false), Options{})
	require.Contains(t, []Kind{Race, Overwritten}, kindOf(t, err))
	require.ErrorContains(t, err, "in place")
}

func TestTwoLanesOnOneConnector(t *testing.T) {
	ps := build(t, key(goccl.SendRecv, goccl.Direct, goccl.LL, 1, 0, 1), shape(t, 2, 1, false))
	for _, p := range ps {
		p.Lanes = append(p.Lanes, p.Lanes[0])
	}
	require.Equal(t, Race, kindOf(t, Check(ps, Options{})))
}

func TestNoProgramForOneRank(t *testing.T) {
	ps := build(t, key(goccl.AllReduce, goccl.Ring, goccl.LL, 1, 0, 1), shape(t, 3, 1, false))
	ps[1] = nil
	require.Equal(t, Disagreement, kindOf(t, Check(ps, Options{})))
	require.Equal(t, Malformed, kindOf(t, Check(nil, Options{})))
	require.Equal(t, Malformed, kindOf(t, Check(make([]*plan.Program, 2), Options{})))
	require.NoError(t, CheckSequence(nil, Options{}))
}
