package machine

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/plan"
)

// recorder is a domain that writes down what it is asked for, and refuses when
// it is closed.
type recorder struct {
	log    []string
	closed bool
}

func (r *recorder) note(format string, args ...any) bool {
	if r.closed {
		return false
	}
	r.log = append(r.log, fmt.Sprintf(format, args...))
	return true
}

func (r *recorder) Move(l *Lane, m *Move) bool {
	s := fmt.Sprintf("%d", m.Bytes)
	for i := range m.Srcs {
		ref := l.Ref(&m.Srcs[i])
		s += fmt.Sprintf(" %v[%d %d %d]", ref.Kind, ref.Index, ref.Slot, ref.Off)
	}
	return r.note("%s", s)
}
func (r *recorder) Signal(_ *Lane, sig int, d uint64)     { r.note("signal %d %d", sig, d) }
func (r *recorder) Await(_ *Lane, sig int, d uint64) bool { return r.note("await %d %d", sig, d) }
func (r *recorder) Post(_ *Lane, sem int, d uint64)       { r.note("post %d %d", sem, d) }
func (r *recorder) Take(_ *Lane, sem int, d uint64) bool  { return r.note("take %d %d", sem, d) }

var _ Domain = (*recorder)(nil)

func program(base plan.Base, code []plan.Instr, opnds []plan.Operand) *plan.Program {
	d := 2
	if base == plan.PerRank {
		d = 1
	}
	return &plan.Program{
		Key:  plan.Key{Coll: goccl.AllReduce, Algo: goccl.Ring, Proto: goccl.LL, DType: goccl.F32, Channels: 1, Chunk: 128},
		Rank: 0, NRanks: 2, Geom: plan.Geom{Base: base, Grain: 64, ChunkBytes: 128, Slices: 2, D: d},
		Code: code, Opnds: opnds, Lanes: []plan.Lane{{Mod: 1, Hi: uint16(len(code))}}, Rows: make([]plan.Row, 1),
		// 0: constant 1, 1: j, 2: constant 0, 3: constant 2
		Exprs: []plan.Expr{{A: 1, P: -1, T: -1}, {B: 1, P: -1, T: -1}, {P: -1, T: -1}, {A: 2, P: -1, T: -1}},
	}
}

func run(t *testing.T, p *plan.Program, unit int64) []string {
	t.Helper()
	var l Lane
	l.Reset(p, 0, 0, unit)
	r := &recorder{}
	s, moved := Run(r, &l)
	require.Equal(t, Finished, s)
	require.True(t, moved)
	s, moved = Run(r, &l)
	require.Equal(t, Finished, s, "a finished lane stays so")
	require.False(t, moved)
	return r.log
}

func TestLoopsAndSlices(t *testing.T) {
	p := program(plan.Whole, []plan.Instr{
		{Op: plan.LOOP},
		{Op: plan.REP, Chunk: 3},
		{Op: plan.MOVE, NSrc: 1, NDst: 1, Chunk: 1},
		{Op: plan.END},
		{Op: plan.END},
	}, []plan.Operand{{Kind: plan.In, Chunk: 1}})
	// One full iteration of two chunks of 128 in two slices, then 100 bytes more:
	// 64 + 36.
	require.Equal(t, []string{
		"64 in[0 0 0]", "64 in[0 0 64]", "64 in[0 0 128]", "64 in[0 0 192]",
		"64 in[0 0 256]", "0 in[0 0 320]", "36 in[0 0 320]", "0 in[0 0 356]",
	}, run(t, p, 356))
	require.Len(t, run(t, p, 0), 4, "nothing is one iteration of empty slices")
}

func TestBlocks(t *testing.T) {
	p := program(plan.PerRank, []plan.Instr{{Op: plan.MOVE, NSrc: 1, NDst: 1}}, []plan.Operand{{Kind: plan.PeerIn, Peer: 0, Chunk: 0}})
	require.Equal(t, []string{"64 peerin[1 0 100]", "36 peerin[1 0 164]"}, run(t, p, 100))
}

func TestRepOfNothingIsSkipped(t *testing.T) {
	p := program(plan.Whole, []plan.Instr{
		{Op: plan.REP, Chunk: 2},
		{Op: plan.SIGNAL, Word: 7, Delta: 1},
		{Op: plan.END},
		{Op: plan.POSTL, Word: 1, Delta: 2},
	}, nil)
	require.Equal(t, []string{"post 1 2"}, run(t, p, 64))
}

func TestBlockedChangesNothing(t *testing.T) {
	p := program(plan.Whole, []plan.Instr{
		{Op: plan.SIGNAL, Word: 1, Delta: 3},
		{Op: plan.WAIT, Word: 2, Delta: 3},
		{Op: plan.WAITL, Word: 0, Delta: 1},
		{Op: plan.MOVE, NSrc: 1, NDst: 1, Chunk: 2},
	}, []plan.Operand{{Kind: plan.Scratch, Slot: 0}})
	var l Lane
	l.Reset(p, 0, 0, 128)
	r := &recorder{}
	require.Equal(t, Progressed, Step(r, &l))
	for _, want := range []string{"await 2 3", "take 0 1", "64 scratch[0 1 0]", "0 scratch[0 1 0]"} {
		r.closed = true
		before := l.PC()
		for range 3 {
			require.Equal(t, Blocked, Step(r, &l))
			require.Equal(t, before, l.PC())
		}
		r.closed = false
		require.Equal(t, Progressed, Step(r, &l))
		require.Equal(t, want, r.log[len(r.log)-1])
	}
	require.Equal(t, Finished, Step(r, &l))
	require.Zero(t, l.Iteration())
}
