package nccl

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	processgroup "github.com/goccl/goccl/process_group"
)

var gpu2 = device.ID{Kind: device.CUDA, Index: 2}

// at is n elements of memory that nobody touches.
func at(addr uintptr, n int, d goccl.DType) device.Buffer {
	return device.FromPointer(addr, n, d, gpu2, nil)
}

func f32(addr uintptr, n int) device.Buffer { return at(addr, n, goccl.F32) }

// anyStream is a stream that translate only asks to be there.
type anyStream struct{ device.Stream }

func translated(t *testing.T, op *processgroup.Op) []call {
	t.Helper()
	if op.Stream == nil {
		op.Stream = anyStream{}
	}
	tr := translator{rank: 1, size: 3, id: gpu2, word: 0xbeef}
	calls, err := tr.translate(nil, op)
	require.NoError(t, err)
	return calls
}

func TestReductions(t *testing.T) {
	for op, number := range map[goccl.ReduceOp]int{goccl.Sum: 0, goccl.Prod: 1, goccl.Max: 2, goccl.Min: 3, goccl.Avg: 4} {
		got := translated(t, &processgroup.Op{Coll: goccl.AllReduce, Redop: op, Root: -1, Src: f32(0x100, 5), Dst: f32(0x200, 5)})
		require.Len(t, got, 1)
		require.EqualValues(t, number, got[0].op, op)
		got[0].op = 0
		require.Equal(t, []call{{fn: allReduce, send: 0x100, recv: 0x200, count: 5, dtype: 7}}, got)
	}
	require.Equal(t, []call{{fn: reduce, send: 0x100, count: 5, dtype: 9, peer: 2}},
		translated(t, &processgroup.Op{Coll: goccl.Reduce, Root: 2, Src: at(0x100, 5, goccl.BF16)}), "no output but on the root")
	require.Equal(t, []call{{fn: reduceScatter, send: 0x100, recv: 0x200, count: 5, dtype: 7}},
		translated(t, &processgroup.Op{Coll: goccl.ReduceScatter, Root: -1, Src: f32(0x100, 15), Dst: f32(0x200, 5)}))
	require.Equal(t, []call{{fn: allReduce, send: 0x100, recv: 0x100, count: 5, dtype: 6, scale: 0.5, elem: goccl.F16}},
		translated(t, &processgroup.Op{Coll: goccl.AllReduce, Redop: goccl.PreMulSum(0.5), Root: -1, Src: at(0x100, 5, goccl.F16), Dst: at(0x100, 5, goccl.F16)}))
	require.Empty(t, translated(t, &processgroup.Op{Coll: goccl.AllReduce, Root: -1, Src: f32(0, 0), Dst: f32(0, 0)}))
}

func TestMovements(t *testing.T) {
	require.Equal(t, []call{{fn: broadcast, send: 0x100, recv: 0x100, count: 5, dtype: 1, peer: 2}},
		translated(t, &processgroup.Op{Coll: goccl.Broadcast, Root: 2, Src: at(0x100, 5, goccl.F8E5M2), Dst: at(0x100, 5, goccl.F8E5M2)}), "as bytes")
	require.Equal(t, []call{{fn: allGather, send: 0x100, recv: 0x200, count: 5, dtype: 8}},
		translated(t, &processgroup.Op{Coll: goccl.AllGather, Root: -1, Src: at(0x100, 5, goccl.F64), Dst: at(0x200, 15, goccl.F64)}))
	require.Equal(t, []call{{fn: allReduce, send: 0xbeef, recv: 0xbeef, count: 1, dtype: 1}},
		translated(t, &processgroup.Op{Coll: goccl.Barrier, Root: -1}))

	list := []device.Buffer{f32(0x1000, 5), f32(0x2000, 5), f32(0x3000, 5)}
	s, r := call{fn: send, send: 0x100, count: 5, dtype: 7}, call{fn: recv, count: 5, dtype: 7}
	require.Equal(t, []call{to(s, 0), from(r, 0x1000, 0), to(s, 1), from(r, 0x2000, 1), to(s, 2), from(r, 0x3000, 2)},
		translated(t, &processgroup.Op{Coll: goccl.AllGather, Root: -1, Src: f32(0x100, 5), DstList: list}))
	s.send = 0x2000
	require.Equal(t, []call{to(s, 0), from(r, 0x1000, 0), to(s, 2), from(r, 0x3000, 2)},
		translated(t, &processgroup.Op{Coll: goccl.AllGather, Root: -1, Src: f32(0x2000, 5), DstList: list}), "in place")
}

func to(c call, peer int) call { c.peer = peer; return c }

func from(c call, addr uintptr, peer int) call { c.recv, c.peer = addr, peer; return c }

func TestExchanges(t *testing.T) {
	s, r := call{fn: send, count: 2, dtype: 7}, call{fn: recv, count: 2, dtype: 7}
	s.send = 0x100
	second, third := s, s
	second.send, third.send = 0x108, 0x110
	require.Equal(t, []call{to(s, 0), from(r, 0x200, 0), to(second, 1), from(r, 0x208, 1), to(third, 2), from(r, 0x210, 2)},
		translated(t, &processgroup.Op{Coll: goccl.AllToAll, Root: -1, Src: f32(0x100, 6), Dst: f32(0x200, 6)}))

	got := translated(t, &processgroup.Op{Coll: goccl.AllToAll, Root: -1, Src: f32(0x100, 3), Dst: f32(0x200, 6),
		SendCounts: []int{2, 1, 0}, RecvCounts: []int{0, 1, 5}})
	require.Equal(t, []call{{fn: send, send: 0x100, count: 2, dtype: 7}, {fn: send, send: 0x108, count: 1, dtype: 7, peer: 1},
		{fn: recv, recv: 0x200, count: 1, dtype: 7, peer: 1}, {fn: recv, recv: 0x204, count: 5, dtype: 7, peer: 2}}, got, "nothing is not sent")
}

func TestRootedTransfers(t *testing.T) {
	list := []device.Buffer{f32(0x1000, 5), f32(0x2000, 5), f32(0x3000, 5)}
	s, r := call{fn: send, send: 0x100, count: 5, dtype: 7}, call{fn: recv, count: 5, dtype: 7}
	require.Equal(t, []call{to(s, 2)}, translated(t, &processgroup.Op{Coll: goccl.Gather, Root: 2, Src: f32(0x100, 5)}))
	require.Equal(t, []call{to(s, 1), from(r, 0x1000, 0), from(r, 0x2000, 1), from(r, 0x3000, 2)},
		translated(t, &processgroup.Op{Coll: goccl.Gather, Root: 1, Src: f32(0x100, 5), DstList: list}))
	require.Equal(t, []call{from(r, 0x1000, 0), from(r, 0x3000, 2)},
		translated(t, &processgroup.Op{Coll: goccl.Gather, Root: 1, Src: f32(0x2000, 5), DstList: list}), "in place")

	out := func(addr uintptr) call { return call{fn: send, send: addr, count: 5, dtype: 7} }
	require.Equal(t, []call{from(r, 0x100, 0)}, translated(t, &processgroup.Op{Coll: goccl.Scatter, Root: 0, Dst: f32(0x100, 5)}))
	require.Equal(t, []call{to(out(0x1000), 0), to(out(0x2000), 1), to(out(0x3000), 2), from(r, 0x100, 1)},
		translated(t, &processgroup.Op{Coll: goccl.Scatter, Root: 1, Dst: f32(0x100, 5), SrcList: list}))
	require.Equal(t, []call{to(out(0x1000), 0), to(out(0x3000), 2)},
		translated(t, &processgroup.Op{Coll: goccl.Scatter, Root: 1, Dst: f32(0x2000, 5), SrcList: list}), "in place")
}

func TestTransfersAndParts(t *testing.T) {
	require.Equal(t, []call{{fn: send, send: 0x100, count: 5, dtype: 7, peer: 2}},
		translated(t, &processgroup.Op{Coll: goccl.SendRecv, Root: 2, Send: true, Src: f32(0x100, 5)}))
	require.Equal(t, []call{{fn: recv, recv: 0x100, count: 5, dtype: 7, peer: 2}},
		translated(t, &processgroup.Op{Coll: goccl.SendRecv, Root: 2, Dst: f32(0x100, 5)}))
	batch := &processgroup.Op{Coll: goccl.SendRecv, Root: -1, Batch: []processgroup.P2P{{Buf: f32(0x100, 5), Peer: 2}, {Buf: f32(0, 0), Peer: 2},
		{Buf: at(0x200, 4, goccl.I64), Peer: 0, Recv: true}}, Stream: anyStream{}}
	want := []call{{fn: send, send: 0x100, count: 5, dtype: 7, peer: 2}, {fn: recv, recv: 0x200, count: 4, dtype: 4}}
	require.Equal(t, want, translated(t, batch))
	require.Empty(t, translated(t, &processgroup.Op{Coll: goccl.SendRecv, Root: -1}))

	sum := &processgroup.Op{Coll: goccl.AllReduce, Root: -1, Src: f32(0x300, 1), Dst: f32(0x300, 1), Stream: anyStream{}}
	require.Equal(t, append([]call{{fn: allReduce, send: 0x300, recv: 0x300, count: 1, dtype: 7}}, want...),
		translated(t, &processgroup.Op{Coll: goccl.AllReduce, Root: -1, Parts: []*processgroup.Op{sum, batch}}))
}

func TestRefusals(t *testing.T) {
	host := device.SliceOf(make([]float32, 5))
	other := device.FromPointer(0x100, 5, goccl.F32, device.ID{Kind: device.CUDA, Index: 0}, nil)
	mine := f32(0x100, 5)
	tr := translator{rank: 1, size: 3, id: gpu2}
	for _, c := range []struct {
		op   *processgroup.Op
		kind error
		text string
	}{
		{&processgroup.Op{Coll: goccl.AllReduce, Src: host, Dst: host}, goccl.ErrUnsupported, "moves memory of cuda:2 and was given host memory; use a group of backend ccl"},
		{&processgroup.Op{Coll: goccl.AllGather, Src: mine, DstList: []device.Buffer{mine, host}}, goccl.ErrUnsupported, "host memory"},
		{&processgroup.Op{Coll: goccl.Scatter, Dst: mine, SrcList: []device.Buffer{other}}, goccl.ErrInvalid, "the buffer lies on cuda:0"},
		{&processgroup.Op{Coll: goccl.SendRecv, Root: -1, Batch: []processgroup.P2P{{Buf: host}}}, goccl.ErrUnsupported, "host memory"},
		{&processgroup.Op{Coll: goccl.AllReduce, Src: mine, Dst: mine}, goccl.ErrInvalid, "allreduce on cuda:2 memory names no stream"},
		{&processgroup.Op{Coll: goccl.AllReduce, Src: at(0x100, 5, goccl.F8E4M3), Dst: at(0x100, 5, goccl.F8E4M3), Stream: anyStream{}}, goccl.ErrUnsupported, "f8e4m3"},
		{&processgroup.Op{Coll: goccl.AllReduce, Parts: []*processgroup.Op{{Coll: goccl.Broadcast, Src: host, Dst: host}}}, goccl.ErrUnsupported, "host memory"},
	} {
		_, err := tr.translate(nil, c.op)
		require.ErrorIs(t, err, c.kind)
		require.ErrorContains(t, err, c.text)
	}
}

// TestTransfersOfAllRanksMatch holds that what one rank sends is what the other
// receives, for every form that becomes transfers.
func TestTransfersOfAllRanksMatch(t *testing.T) {
	const n = 3
	part := func(rank, q int) device.Buffer { return f32(uintptr(0x10000*(rank+1)+0x100*q), 4) }
	forms := map[string]func(rank int) *processgroup.Op{
		"gather": func(rank int) *processgroup.Op {
			op := &processgroup.Op{Coll: goccl.Gather, Root: 1, Src: part(rank, 9)}
			if rank == 1 {
				op.DstList = []device.Buffer{part(rank, 0), part(rank, 1), part(rank, 2)}
			}
			return op
		},
		"scatter": func(rank int) *processgroup.Op {
			op := &processgroup.Op{Coll: goccl.Scatter, Root: 1, Dst: part(rank, 9)}
			if rank == 1 {
				op.SrcList = []device.Buffer{part(rank, 0), part(rank, 1), part(rank, 2)}
			}
			return op
		},
		"alltoallv": func(rank int) *processgroup.Op {
			op := &processgroup.Op{Coll: goccl.AllToAll, Root: -1}
			for q := range n {
				op.SendCounts, op.RecvCounts = append(op.SendCounts, rank*q), append(op.RecvCounts, q*rank)
			}
			op.Src, op.Dst = f32(0x100, 3*rank), f32(0x9000, 3*rank)
			return op
		},
		"allgather": func(rank int) *processgroup.Op {
			return &processgroup.Op{Coll: goccl.AllGather, Root: -1, Src: part(rank, 9), DstList: []device.Buffer{part(rank, 0), part(rank, 1), part(rank, 2)}}
		},
	}
	type message struct{ from, to, count int }
	for name, form := range forms {
		sent, got := map[message]int{}, map[message]int{}
		for rank := range n {
			op := form(rank)
			op.Stream = anyStream{}
			tr := translator{rank: rank, size: n, id: gpu2}
			calls, err := tr.translate(nil, op)
			require.NoError(t, err)
			for _, c := range calls {
				switch c.fn {
				case send:
					sent[message{rank, c.peer, c.count}]++
				case recv:
					got[message{c.peer, rank, c.count}]++
				default:
					t.Fatalf("%s: %+v is no transfer", name, c)
				}
			}
		}
		require.NotEmpty(t, sent)
		require.Equal(t, sent, got, name)
	}
}
