package gpu_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/exec"
	"github.com/goccl/goccl/comm/exec/gpu"
	"github.com/goccl/goccl/comm/exec/gpu/gputest"
	"github.com/goccl/goccl/comm/plan"
	"github.com/goccl/goccl/comm/plan/algo"
)

func TestRankRefuses(t *testing.T) {
	e := newEmulator(t, 2)
	l := gputest.Small(2)
	_, err := gpu.New(gpu.Config{Rank: 2, Layout: l, Device: e.Device(0)})
	require.ErrorIs(t, err, goccl.ErrInvalid)
	_, err = gpu.New(gpu.Config{Layout: gpu.Layout{}, Device: e.Device(0)})
	require.ErrorIs(t, err, goccl.ErrInvalid)

	k := gputest.KeyOf(l, goccl.AllReduce, goccl.OneShot, goccl.LL, goccl.F32)
	var ps []*plan.Program
	for r := range 2 {
		p, err := algo.Build(k, r, gputest.Mapped(t, 2))
		require.NoError(t, err)
		ps = append(ps, p)
	}
	larger := l
	larger.Slots = 4
	a, err := gpu.New(gpu.Config{Rank: 0, Layout: larger, Device: e.Device(0)})
	require.NoError(t, err)
	b, err := gpu.New(gpu.Config{Rank: 1, Layout: l, Device: e.Device(1)})
	require.NoError(t, err)
	_, err = a.Bind(ps[0])
	require.ErrorContains(t, err, "Bind before Map")
	require.ErrorIs(t, a.Map([][]byte{a.Handle()}), goccl.ErrInvalid)
	handles := [][]byte{a.Handle(), b.Handle()}
	require.ErrorIs(t, a.Map(handles), goccl.ErrMismatch)
	require.NoError(t, b.Map(handles))
	require.ErrorContains(t, b.Map(handles), "mapped already")
	_, err = b.Bind(ps[0])
	require.ErrorContains(t, err, "the Program of rank 0 on rank 1")
	require.ErrorIs(t, b.SetWindow(gpu.MaxWindows, make([]uintptr, 2), 1), goccl.ErrInvalid)
	require.ErrorIs(t, b.SetWindow(0, make([]uintptr, 3), 1), goccl.ErrInvalid)

	bound, err := b.Bind(ps[1])
	require.NoError(t, err)
	require.ErrorContains(t, bound.Launch(&exec.Args{Unit: 2*1024 + 1}, e.Stream(1)), "serves one chunk in each channel")
	require.ErrorIs(t, bound.Launch(&exec.Args{Unit: -1}, e.Stream(1)), goccl.ErrInvalid)
	for range 2 {
		require.NoError(t, a.Close())
		require.NoError(t, b.Close())
		a.Abort() // the word is gone: nothing happens
		require.NoError(t, a.Err())
	}
	_, err = b.Bind(ps[1])
	require.ErrorIs(t, err, goccl.ErrClosed)
	require.ErrorIs(t, b.Map(handles), goccl.ErrClosed)
}

// TestThreadsFollowTheSize looks at the sizes of blocks that launches choose.
func TestThreadsFollowTheSize(t *testing.T) {
	w, _ := newWorld(t, 2)
	last := 0
	for _, p := range []goccl.Protocol{goccl.LL, goccl.Simple} {
		b, err := w.Ranks[0].Bind(w.Build(gputest.KeyOf(w.Layout, goccl.AllReduce, goccl.Ring, p, goccl.F32), 0))
		require.NoError(t, err)
		last = 0
		for _, unit := range []int64{0, 8, 1 << 10, 1 << 12, 1 << 14, 1 << 20} {
			n := b.Threads(unit)
			require.Contains(t, []int{64, 128, 256, 512}, n)
			require.GreaterOrEqual(t, n, last, "%v: %d bytes", p, unit)
			last = n
		}
		require.NoError(t, b.SetThreads(96))
		require.Equal(t, 96, b.Threads(1<<20))
	}
}

// TestImagesFindRoom binds more Programs than there is room for.
func TestImagesFindRoom(t *testing.T) {
	w, _ := newWorld(t, 2)
	rng := rand.New(rand.NewPCG(1, 1))
	for round := range 2 {
		for _, p := range []goccl.Protocol{goccl.LL, goccl.Simple} {
			k := gputest.KeyOf(w.Layout, goccl.AllReduce, goccl.Ring, p, goccl.F32)
			k.Channels = uint8(1 + round)
			w.Do(gputest.Op{Key: k, Elems: 100, Threads: 8}, rng)
		}
		for _, r := range w.Ranks {
			r.FillImages()
		}
	}
	w.Run(1)
}
