package fake_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	processgroup "github.com/goccl/goccl/process_group"
	"github.com/goccl/goccl/process_group/backend/fake"
	"github.com/goccl/goccl/trace"
)

func TestOnCommand(t *testing.T) {
	g, b := fake.Group(1, 3)
	defer func() { g.Abort(nil); require.NoError(t, g.Close()); require.True(t, b.Closed()) }()
	require.False(t, b.Complete(nil))
	require.False(t, b.Fail(errors.New("nothing to fail")))
	out := make([]int32, 2)
	pending := make(chan error, 1)
	go func() { pending <- b.AwaitPending(t.Context(), 2) }()
	first := g.AllReduce(device.SliceOf(out), goccl.Sum, processgroup.Label("a"))
	second := g.AllReduce(device.SliceOf(out), goccl.Sum, processgroup.Label("b"))
	require.NoError(t, <-pending)
	require.Equal(t, "a", b.Pending()[0].Label)
	done, err := first.Test()
	require.False(t, done)
	require.NoError(t, err)

	require.True(t, b.Complete(func(op *processgroup.Op) {
		require.Equal(t, 2, op.Dst.Count)
		out[1] = 5
	}))
	require.NoError(t, first.Wait(t.Context()))
	require.EqualValues(t, 5, out[1])
	broken := errors.New("broken")
	require.True(t, b.Fail(broken))
	require.ErrorIs(t, second.Wait(t.Context()), broken)
	require.Equal(t, 2, b.Started())

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, b.AwaitPending(ctx, 1), context.Canceled)
}

func TestLostRank(t *testing.T) {
	w := fake.Connect(3)
	gs := w.Groups(processgroup.Config{})
	work := gs[0].AllReduce(device.SliceOf([]float32{1}), goccl.Sum)
	w.Lose(2)
	for _, w := range []processgroup.Work{work, gs[1].AllReduce(device.SliceOf([]float32{1}), goccl.Sum)} {
		err := w.Wait(t.Context())
		require.ErrorIs(t, err, goccl.ErrPeerLost)
		var e *goccl.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, 2, e.Peer)
	}
	for _, g := range gs {
		require.NoError(t, g.Close())
	}
}

func TestControlPlaysThePeers(t *testing.T) {
	var c fake.Control
	early := errors.New("before anyone listened")
	c.PeerFails(early)
	c.PeerFails(errors.New("later"))
	var heard []error
	c.OnFailure(func(err error) { heard = append(heard, err) })
	require.Equal(t, []error{early}, heard)
	mine := errors.New("mine")
	c.Fail(mine)
	c.Fail(early)
	require.Equal(t, mine, c.Told())
	lag := processgroup.Lag{Rank: 1, State: trace.Gone}
	c.SetLaggards(lag)
	require.Equal(t, []processgroup.Lag{lag}, c.Laggards(t.Context(), 1))
	require.Equal(t, 1, c.Asked())
}
