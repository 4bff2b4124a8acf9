package comm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
)

// TestOnDevice holds what is chosen for GPUs, by collective, ranks and size.
func TestOnDevice(t *testing.T) {
	for _, c := range []struct {
		coll  goccl.Collective
		ranks int
		bytes int64
		want  Decision
	}{
		{goccl.AllReduce, 2, 0, Decision{Algo: goccl.OneShot, Proto: goccl.LL, Channels: 1}},
		{goccl.AllReduce, 2, 8, Decision{Algo: goccl.OneShot, Proto: goccl.LL, Channels: 1}},
		{goccl.AllReduce, 2, 16 << 10, Decision{Algo: goccl.OneShot, Proto: goccl.LL, Channels: 8}},
		{goccl.AllReduce, 2, 1 << 20, Decision{Algo: goccl.OneShot, Proto: goccl.LL, Channels: 128}},
		{goccl.AllReduce, 2, 1<<20 + 4, Decision{Algo: goccl.TwoShot, Proto: goccl.Simple, Channels: 64}},
		{goccl.AllReduce, 2, 256 << 20, Decision{Algo: goccl.TwoShot, Proto: goccl.Simple, Channels: 128}},
		{goccl.AllReduce, 8, 128 << 10, Decision{Algo: goccl.OneShot, Proto: goccl.LL, Channels: 64}},
		{goccl.AllReduce, 8, 200 << 10, Decision{Algo: goccl.TwoShot, Proto: goccl.LL, Channels: 16}},
		{goccl.AllReduce, 16, 1 << 30, Decision{Algo: goccl.Ring, Proto: goccl.Simple, Channels: 128}},
		{goccl.AllGather, 2, 2 << 20, Decision{Algo: goccl.OneShot, Proto: goccl.LL, Channels: 128}},
		{goccl.AllGather, 2, 16 << 20, Decision{Algo: goccl.Direct, Proto: goccl.Simple, Channels: 128}},
		{goccl.AllGather, 9, 16 << 20, Decision{Algo: goccl.Ring, Proto: goccl.Simple, Channels: 128}},
		{goccl.ReduceScatter, 2, 64 << 10, Decision{Algo: goccl.Direct, Proto: goccl.LL, Channels: 16}},
		{goccl.Broadcast, 2, 512 << 10, Decision{Algo: goccl.Direct, Proto: goccl.Simple, Channels: 16}},
		{goccl.Broadcast, 4, 512 << 10, Decision{Algo: goccl.Ring, Proto: goccl.Simple, Channels: 16}},
		{goccl.AllToAll, 16, 1 << 20, Decision{Algo: goccl.Direct, Proto: goccl.Simple, Channels: 32}},
	} {
		require.Equal(t, c.want, onDevice(Request{Coll: c.coll, Bytes: c.bytes, Ranks: c.ranks, MaxOneShot: 1 << 20, MaxChannels: 128}), "%v of %d bytes on %d ranks", c.coll, c.bytes, c.ranks)
	}
	few := onDevice(Request{Coll: goccl.AllReduce, Bytes: 64 << 10, Ranks: 2, MaxOneShot: 64 << 10, MaxChannels: 8})
	require.Equal(t, Decision{Algo: goccl.OneShot, Proto: goccl.LL, Channels: 8}, few, "no more channels than there are")
}
