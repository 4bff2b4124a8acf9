package ccl

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm"
)

func request(c goccl.Collective, bytes int64) comm.Request {
	return comm.Request{Coll: c, Bytes: bytes, DType: goccl.F32, Ranks: 4, MaxOneShot: 4096, MaxChunkLL: 4096, MaxChunkSimple: 1 << 20}
}

func TestForceNothingIsTheTunerItself(t *testing.T) {
	base := comm.DefaultTuner()
	require.Equal(t, base, Force{}.over(base, nil))
	require.Nil(t, Force{}.over(nil, nil))
}

func TestForceOverrules(t *testing.T) {
	tu := Force{Algorithm: goccl.Ring, Protocol: goccl.Simple, MaxChannels: 1, ChunkBytes: 1000}.over(nil, nil)
	d, err := tu.Choose(request(goccl.AllReduce, 64))
	require.NoError(t, err)
	require.Equal(t, comm.Decision{Algo: goccl.Ring, Proto: goccl.Simple, Channels: 1, Chunk: 512}, d)
}

// C75: what a collective does not have is not forced on it; one warning says so.
func TestC75ForceFallsBackWithOneWarning(t *testing.T) {
	var log bytes.Buffer
	tu := Force{Algorithm: goccl.Tree}.over(nil, slog.New(slog.NewTextHandler(&log, nil)))
	want, err := comm.DefaultTuner().Choose(request(goccl.AllGather, 1<<20))
	require.NoError(t, err)
	for range 3 {
		d, err := tu.Choose(request(goccl.AllGather, 1<<20))
		require.NoError(t, err)
		require.Equal(t, want, d)
	}
	require.Equal(t, 1, strings.Count(log.String(), "the forced algorithm is not used"))
	for _, word := range []string{"collective=allgather", "forced=tree", "used=" + want.Algo.String()} {
		require.Contains(t, log.String(), word)
	}
	d, err := tu.Choose(request(goccl.AllReduce, 1<<20))
	require.NoError(t, err)
	require.Equal(t, goccl.Tree, d.Algo)
}

// One shot is bounded by its slot: larger messages keep what was chosen.
func TestForceOneShotOnlyWhereItFits(t *testing.T) {
	tu := Force{Algorithm: goccl.OneShot}.over(nil, nil)
	for bytes, want := range map[int64]bool{4096: true, 4097: false} {
		d, err := tu.Choose(request(goccl.AllReduce, bytes))
		require.NoError(t, err)
		require.Equal(t, want, d.Algo == goccl.OneShot, bytes)
		d, err = tu.Choose(request(goccl.AllGather, 4*bytes))
		require.NoError(t, err)
		require.Equal(t, want, d.Algo == goccl.OneShot, bytes)
	}
}

func TestForcedChunksAreWhole(t *testing.T) {
	for in, out := range map[int]int64{1: 512, 511: 512, 512: 512, 1023: 512, 65536: 65536} {
		require.Equal(t, out, roundChunk(in))
	}
}
