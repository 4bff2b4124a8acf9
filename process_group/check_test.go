package processgroup_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	processgroup "github.com/goccl/goccl/process_group"
	"github.com/goccl/goccl/process_group/backend/fake"
	"github.com/goccl/goccl/trace"
)

func f32(n int) device.Buffer { return device.SliceOf(make([]float32, n)) }

type group = processgroup.Group

var (
	cuda  = device.FromPointer(64, 2, goccl.F32, device.ID{Kind: device.CUDA}, nil)
	odd   = device.FromPointer(3, 2, goccl.F32, device.ID{}, nil)
	f8    = device.Buffer{Addr: 8, Count: 2, DType: goccl.F8E4M3}
	whole = f32(6)

	// refusals are the wrong calls of rank 1 of 3 that this rank alone can see.
	refusals = map[string]struct {
		call func(g *group) processgroup.Work
		says string
	}{
		"no dtype": {func(g *group) processgroup.Work { return g.AllReduce(device.Buffer{}, goccl.Sum) }, "no element type"},
		"negative count": {func(g *group) processgroup.Work {
			return g.Broadcast(device.Buffer{Addr: 8, Count: -1, DType: goccl.F32}, 0)
		}, "-1 elements"},
		"misaligned":      {func(g *group) processgroup.Work { return g.AllReduce(odd, goccl.Sum) }, "not aligned"},
		"cuda, no stream": {func(g *group) processgroup.Work { return g.AllReduce(cuda, goccl.Sum) }, "no stream"},
		"two devices":     {func(g *group) processgroup.Work { return g.AllReduceInto(cuda, f32(2), goccl.Sum) }, "host and cuda:0"},
		"two types": {func(g *group) processgroup.Work {
			return g.AllReduceInto(device.SliceOf(make([]int32, 2)), f32(2), goccl.Sum)
		}, "f32 and i32"},
		"lengths": {func(g *group) processgroup.Work { return g.AllReduceInto(f32(3), f32(2), goccl.Sum) }, "3 elements for an input of 2"},
		"overlap": {func(g *group) processgroup.Work {
			return g.AllReduceInto(whole.Slice(0, 4), whole.Slice(1, 5), goccl.Sum)
		}, "overlap in part"},
		"no reduction": {func(g *group) processgroup.Work { return g.AllReduce(f32(2), goccl.ReduceOp(77)) }, "no reduction"},
		"f8 sum":       {func(g *group) processgroup.Work { return g.AllReduce(f8, goccl.Sum) }, "moved, not reduced"},
		"scaled integers": {func(g *group) processgroup.Work {
			return g.AllReduce(device.SliceOf(make([]int8, 2)), goccl.PreMulSum(2))
		}, "needs floats"},
		"tag":             {func(g *group) processgroup.Work { return g.AllReduce(f32(2), goccl.Sum, processgroup.Tag(1)) }, "tag belongs"},
		"root":            {func(g *group) processgroup.Work { return g.Broadcast(f32(2), 3) }, "rank 3 is not in group"},
		"root of the job": {func(g *group) processgroup.Work { return g.Reduce(f32(2), goccl.Sum, 5) }, "rank 5 of the job is rank 2 of it"},
		"list length":     {func(g *group) processgroup.Work { return g.AllGather([]device.Buffer{f32(2)}, f32(2)) }, "1 buffers for 3 ranks"},
		"list counts":     {func(g *group) processgroup.Work { return g.AllGather([]device.Buffer{f32(2), f32(1), f32(2)}, f32(2)) }, "rank 1 holds 1"},
		"list alias": {func(g *group) processgroup.Work {
			b := f32(2)
			return g.AllGather([]device.Buffer{b, f32(2), f32(2)}, b)
		}, "rank 0 overlaps"},
		"parts":            {func(g *group) processgroup.Work { return g.AllGatherInto(f32(7), f32(2)) }, "7 elements are not 3 ranks times 2"},
		"part in place":    {func(g *group) processgroup.Work { return g.AllGatherInto(whole, whole.Slice(0, 2)) }, "part 1 of the large one"},
		"scatter in place": {func(g *group) processgroup.Work { return g.ReduceScatter(whole.Slice(4, 6), whole, goccl.Sum) }, "part 1 of the large one"},
		"exchange":         {func(g *group) processgroup.Work { return g.AllToAll(f32(4), f32(4)) }, "equal and divisible"},
		"exchange overlap": {func(g *group) processgroup.Work { return g.AllToAll(whole, whole) }, "no form in place"},
		"counts length":    {func(g *group) processgroup.Work { return g.AllToAllV(f32(2), f32(2), []int{2}, []int{0, 2, 0}) }, "1 receive counts"},
		"counts sum":       {func(g *group) processgroup.Work { return g.AllToAllV(f32(2), f32(2), []int{1, 0, 0}, []int{0, 0, 2}) }, "add up to 1"},
		"counts beyond":    {func(g *group) processgroup.Work { return g.AllToAllV(f32(2), f32(2), []int{1, 0, 1}, []int{0, 0, 3}) }, "does not fit"},
		"counts to self":   {func(g *group) processgroup.Work { return g.AllToAllV(f32(2), f32(2), []int{0, 2, 0}, []int{1, 0, 1}) }, "sends itself 0 elements and receives 2"},
		"gather list":      {func(g *group) processgroup.Work { return g.Gather(nil, f32(2), 1) }, "0 buffers for 3 ranks"},
		"scatter list":     {func(g *group) processgroup.Work { return g.Scatter(f32(2), []device.Buffer{f32(2), f32(3), f32(2)}, 1) }, "rank 1 holds 3"},
		"send to itself":   {func(g *group) processgroup.Work { return g.Send(f32(2), 1) }, "wait for itself"},
		"receive from":     {func(g *group) processgroup.Work { return g.Recv(f32(2), -1) }, "rank -1"},
		"batch peer": {func(g *group) processgroup.Work {
			return g.BatchSendRecv([]processgroup.P2P{{Buf: f32(1), Peer: 0}, {Buf: f32(1), Peer: 9}})
		}, "transfer 1 of the batch"},
		"batch half self": {func(g *group) processgroup.Work { return g.BatchSendRecv([]processgroup.P2P{{Buf: f32(1), Peer: 1}}) }, "sends itself 1 messages and receives 0"},
		"batch self count": {func(g *group) processgroup.Work {
			return g.BatchSendRecv([]processgroup.P2P{{Buf: f32(1), Peer: 1}, {Buf: f32(2), Peer: 1, Recv: true}})
		}, "is 1 f32 and is received as 2"},
	}
)

// TestRefusals makes every wrong call that one rank alone can see, and holds that
// the Work, the recorder and the peers tell of it.
func TestRefusals(t *testing.T) {
	for name, c := range refusals {
		t.Run(name, func(t *testing.T) {
			control, back := new(fake.Control), fake.Immediate()
			g := processgroup.New(processgroup.Config{Name: "tp", Rank: 1, Size: 3, GlobalRanks: []int{1, 3, 5}, Backend: back, Control: control, Host: "box"})
			defer func() { require.NoError(t, g.Close()) }()
			err := c.call(g).Wait(t.Context())
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, "goccl: rank 1 (box, pid ")
			require.True(t, errorIsAny(err, goccl.ErrInvalid, goccl.ErrUnsupported), err)
			require.ErrorIs(t, err, goccl.ErrAborted)
			require.Zero(t, back.Started(), "a refused call reached the backend")

			require.Equal(t, firstLine(err), control.Told().Error())
			require.Equal(t, control.Told(), context.Cause(g.Context()))
			ops := slices.Collect(g.Operations())
			require.Len(t, ops, 1)
			require.Equal(t, trace.Refused, ops[0].State)
			require.EqualValues(t, 1, ops[0].Seq, "the refused call keeps its number")
		})
	}
}

func TestC76RanksAreThoseOfTheGroup(t *testing.T) {
	g := processgroup.New(processgroup.Config{Name: "odd", Rank: 1, Size: 2, GlobalRanks: []int{1, 3}, Backend: fake.Immediate()})
	defer g.Close()
	require.NoError(t, g.Broadcast(f32(1), 1).Wait(t.Context()))
	global, err := g.GlobalRank(1)
	require.NoError(t, err)
	require.Equal(t, 3, global)
	_, err = g.GlobalRank(3)
	require.ErrorIs(t, err, goccl.ErrInvalid)
	require.ErrorContains(t, g.Broadcast(f32(1), 3).Wait(t.Context()), "rank 3 of the job is rank 1 of it")
}

func TestConfigIsChecked(t *testing.T) {
	good := processgroup.Config{Name: "g", Size: 1, Backend: fake.Immediate()}
	bad := []func(c *processgroup.Config){
		func(c *processgroup.Config) { c.Name = "" },
		func(c *processgroup.Config) { c.Size = 0 },
		func(c *processgroup.Config) { c.Rank = 1 },
		func(c *processgroup.Config) { c.Backend = nil },
		func(c *processgroup.Config) { c.GlobalRanks = []int{1, 2} },
		func(c *processgroup.Config) { c.Timeout = -1 },
	}
	for i, spoil := range bad {
		c := good
		spoil(&c)
		require.Panics(t, func() { processgroup.New(c) }, i)
	}
	require.NoError(t, processgroup.New(good).Close())
}
