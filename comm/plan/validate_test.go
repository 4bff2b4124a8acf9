package plan

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
)

// sample is a small well-formed Program that uses most of what there is.
func sample() *Program {
	return &Program{
		Key:  Key{Coll: goccl.AllReduce, Algo: goccl.Ring, Proto: goccl.LL, DType: goccl.F32, Channels: 1, Chunk: 128},
		Rank: 1, NRanks: 3, Geom: Geom{Grain: 64, ChunkBytes: 128, Slices: 1, D: 3}, Sems: 1,
		Code: []Instr{
			{Op: LOOP},
			{Op: MOVE, Flags: Pre, NSrc: 2, NDst: 1, Src: 0, Dst: 2},
			{Op: REP, Chunk: 0},
			{Op: SIGNAL, Word: 0, Delta: 1},
			{Op: WAIT, Word: 1, Delta: 1},
			{Op: END},
			{Op: POSTL, Delta: 1},
			{Op: WAITL, Delta: 1},
			{Op: END},
		},
		Lanes: []Lane{{Mod: 1, Hi: 9}},
		Opnds: []Operand{{Kind: FifoRecv, Conn: 0}, {Kind: In, Chunk: 0}, {Kind: FifoSend, Conn: 1}},
		Exprs: []Expr{{P: 0, A: 1, M: 3, T: 0}},
		Rows:  []Row{{P: [8]int32{2}, ConnN: 2, SigN: 2}},
		Conns: []Conn{{Peer: 0, Proto: goccl.LL}, {Peer: 2, Send: true, Proto: goccl.LL}},
		Sigs:  []Sig{{Peer: 0, Out: true}, {Peer: 0}}, Tables: [][]uint32{{0, 1, 2}},
	}
}

var malformed = []struct {
	says string
	edit func(p *Program)
}{
	{"rank 3 of 3", func(p *Program) { p.Rank = 3 }},
	{"key is not valid", func(p *Program) { p.Key.DType = 0 }},
	{"protocol", func(p *Program) { p.Key.Proto = goccl.AutoProto }},
	{"root 3", func(p *Program) { p.Key.Root = 3 }},
	{"1 rows for 2 channels", func(p *Program) { p.Key.Channels = 2 }},
	{"semaphores", func(p *Program) { p.Sems = -1 }},
	{"base 1", func(p *Program) { p.Geom.Base = PerRank }},
	{"grain 63", func(p *Program) { p.Geom.Grain = 63 }},
	{"not a multiple", func(p *Program) { p.Geom.ChunkBytes = 100 }},
	{"the key allows 128", func(p *Program) { p.Geom.ChunkBytes = 192 }},
	{"0 slices", func(p *Program) { p.Geom.Slices = 0 }},
	{"0 chunks", func(p *Program) { p.Geom.D = 0 }},
	{"row number 8", func(p *Program) { p.Exprs[0].P = 8 }},
	{"modulus -1", func(p *Program) { p.Exprs[0].M = -1 }},
	{"table 1 of 1", func(p *Program) { p.Exprs[0].T = 1 }},
	{"into a table of 3", func(p *Program) { p.Exprs[0].M = 4 }},
	{"into a table of 3", func(p *Program) { p.Exprs[0].M = 0 }},
	{"connector 0: peer 1", func(p *Program) { p.Conns[0].Peer = 1 }},
	{"signal 0: peer 0, word 2", func(p *Program) { p.Sigs[0].Word = Words }},
	{"no expression uses it", func(p *Program) { p.Rows[0].P[1] = 1 }},
	{"connectors or signals out of range", func(p *Program) { p.Rows[0].ConnLo = 1 }},
	{"connector 1 is there twice", func(p *Program) { p.Conns[1] = p.Conns[0] }},
	{"signal 1 is there twice", func(p *Program) { p.Sigs[1] = p.Sigs[0] }},
	{"code(99)", func(p *Program) { p.Code[0].Op = 99 }},
	{"LOOP with operands", func(p *Program) { p.Code[0].Dst = 1 }},
	{"LOOP with a chunk", func(p *Program) { p.Code[0].Chunk = 1 }},
	{"MOVE with a word", func(p *Program) { p.Code[1].Delta = 1 }},
	{"operand 1: kind(77)", func(p *Program) { p.Opnds[1].Kind = 77 }},
	{"in has a field", func(p *Program) { p.Opnds[1].Slot = 1 }},
	{"in: expression out of range", func(p *Program) { p.Opnds[1].Chunk = 1 }},
	{"0 mod 0", func(p *Program) { p.Lanes[0].Mod = 0 }},
	{"instructions 0 to 10 of 9", func(p *Program) { p.Lanes[0].Hi = 10 }},
	{"LOOP inside a loop", func(p *Program) { p.Code[2] = Instr{Op: LOOP} }},
	{"REP inside REP", func(p *Program) { p.Code[3] = Instr{Op: REP} }},
	{"END of nothing", func(p *Program) { p.Code[0] = p.Code[6] }},
	{"without END", func(p *Program) { p.Lanes[0].Hi = 8 }},
	{"no signal 1 for SIGNAL", func(p *Program) { p.Code[3].Word = 1 }},
	{"no signal 2 for WAIT", func(p *Program) { p.Code[4].Word = 2 }},
	{"semaphore 1 of 1", func(p *Program) { p.Code[6].Word = 1 }},
	{"WAITL of nothing", func(p *Program) { p.Code[7].Delta = 0 }},
	{"expression of the count", func(p *Program) { p.Code[2].Chunk = 1 }},
	{"without a source", func(p *Program) { p.Code[1].NSrc, p.Code[1].Src = 0, 0 }},
	{"operands out of range", func(p *Program) { p.Code[1].Dst = 3 }},
	{"expression of the chunk", func(p *Program) { p.Code[1].Chunk = 7 }},
	{"flags 0x4", func(p *Program) { p.Code[1].Flags = 4 }},
	{"a copy engine", func(p *Program) { p.Lanes[0].Agent = CEAgent }},
	{"send as a source", func(p *Program) { p.Opnds[0].Kind = FifoSend }},
	{"in as a destination", func(p *Program) { p.Opnds[2] = p.Opnds[1] }},
	{"PRE with 0 sources", func(p *Program) { p.Code[1].NSrc = 1 }},
	{"connector 0 twice", func(p *Program) { p.Opnds[1] = p.Opnds[0]; p.Code[1].Flags = 0 }},
	{"no connector 0 for send", func(p *Program) { p.Opnds[2].Conn = 0 }},
}

func TestValidate(t *testing.T) {
	require.NoError(t, Validate(sample()))
	require.ErrorIs(t, Validate(nil), goccl.ErrInvalid)
	for _, m := range malformed {
		p := sample()
		m.edit(p)
		err := Validate(p)
		require.ErrorIs(t, err, goccl.ErrInvalid, m.says)
		require.ErrorContains(t, err, m.says)
	}
}

func TestNamesOfWhatIsNot(t *testing.T) {
	require.Equal(t, "agent(9)", Agent(9).String())
	require.Equal(t, "kind(99)", Kind(99).String())
	require.Equal(t, "code(99)", Code(99).String())
	require.Equal(t, "whole", Whole.String())
}

func TestEval(t *testing.T) {
	p := sample()
	p.Exprs = []Expr{
		{A: 5, P: -1, T: -1},
		{A: -1, B: -2, P: 0, M: 3, T: -1},
		{A: 1, B: 1, P: 0, M: 3, T: 0},
	}
	p.Tables[0] = []uint32{10, 20, 30}
	require.Equal(t, 5, p.Eval(0, 0, 9))
	for j, want := range []int{1, 2, 0, 1} { // (2 - 1 - 2j) mod 3
		require.Equal(t, want, p.Eval(1, 0, j))
	}
	for j, want := range []int{10, 20, 30, 10} { // table at (2 + 1 + j) mod 3
		require.Equal(t, want, p.Eval(2, 0, j))
	}
}
