package transporttest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/comm/transport"
)

// runMapper is the part of the suite for transports that share memory.
func runMapper(t *testing.T, world func(*testing.T) *World) {
	t.Run("MapperIsSeen", func(t *testing.T) { mapperIsSeen(t, world(t)) })
	t.Run("MapperKeepsMemory", func(t *testing.T) { mapperKeepsMemory(t, world(t)) })
	t.Run("C51MapperRefuses", func(t *testing.T) { mapperRefuses(t, world(t)) })
}

func mappers(t *testing.T, w *World) (a, b transport.Mapper) {
	a, ok := w.Transports[0].(transport.Mapper)
	require.True(t, ok)
	b, ok = w.Transports[1].(transport.Mapper)
	require.True(t, ok)
	return a, b
}

func mapperIsSeen(t *testing.T, w *World) {
	a, b := mappers(t, w)
	const bytes = 3<<20 + 64
	mine, err := a.Alloc(bytes)
	require.NoError(t, err)
	defer mine.Close()
	require.GreaterOrEqual(t, mine.Mem().Len(), bytes)
	for i, v := range mine.Mem().Bytes() {
		if v != 0 {
			t.Fatalf("byte %d of new memory is %d", i, v)
		}
	}
	theirs, err := b.Map(Context(t), w.Peers[0], mine.Handle())
	require.NoError(t, err)
	defer theirs.Close()
	require.Equal(t, mine.Mem().Len(), theirs.Mem().Len())
	for _, off := range []int{0, 4096, bytes - 8} {
		mine.Mem().Word(off).Store(uint64(off) + 11)
		require.Equal(t, uint64(off)+11, theirs.Mem().Word(off).Load())
		theirs.Mem().Word(off).Add(3)
		require.Equal(t, uint64(off)+14, mine.Mem().Word(off).Load())
	}
}

// Memory goes with its last mapping, not with its maker.
func mapperKeepsMemory(t *testing.T, w *World) {
	a, b := mappers(t, w)
	mine, err := a.Alloc(8192)
	require.NoError(t, err)
	mine.Mem().Word(8).Store(5)
	theirs, err := b.Map(Context(t), w.Peers[0], mine.Handle())
	require.NoError(t, err)
	handle := append([]byte(nil), mine.Handle()...)
	require.NoError(t, mine.Close())
	require.NoError(t, mine.Close())
	require.Equal(t, uint64(5), theirs.Mem().Word(8).Load())
	_, err = b.Map(Context(t), w.Peers[0], handle)
	require.Error(t, err, "a closed segment takes no further rank")
	require.NoError(t, theirs.Close())
	require.NoError(t, theirs.Close())
}

func mapperRefuses(t *testing.T, w *World) {
	a, b := mappers(t, w)
	for _, bytes := range []int{0, -1, 1 << 45} {
		_, err := a.Alloc(bytes)
		require.Error(t, err, "%d bytes", bytes)
	}
	for _, handle := range [][]byte{nil, {1, 2, 3}, make([]byte, 52), make([]byte, 8)} {
		_, err := b.Map(Context(t), w.Peers[0], handle)
		require.Error(t, err)
	}
}
