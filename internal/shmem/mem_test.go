package shmem

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMemBounds(t *testing.T) {
	m, err := Private(256)
	require.NoError(t, err)
	require.Equal(t, 256, m.Len())
	require.Zero(t, m.Addr(0)%alignment)
	for _, off := range []int{-8, 249, 256, 4, 1 << 40} {
		require.Panics(t, func() { m.Word(off) }, "word at %d", off)
	}
	for _, span := range [][2]int{{-1, 2}, {0, 257}, {256, 1}, {8, -1}, {1 << 62, 1 << 62}} {
		require.Panics(t, func() { m.Slice(span[0], span[1]) }, "slice %v", span)
	}
	m.Word(248).Store(5)
	m.Put(240, 6)
	tail := m.Slice(240, 16)
	require.Equal(t, []byte{6, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0}, tail.Bytes())
	require.Equal(t, uint64(5), tail.Get(8))
	require.Equal(t, m.Addr(240), tail.Addr(0))
	require.Nil(t, m.Slice(256, 0).Bytes())
}

// Private memory lives as long as anything that points into it.
func TestMemKeepsPrivateMemory(t *testing.T) {
	var tails []Mem
	for i := range 50 {
		m, err := Private(1 << 16)
		require.NoError(t, err)
		m.Word(1<<16 - 8).Store(uint64(i))
		tails = append(tails, m.Slice(1<<16-8, 8))
	}
	runtime.GC()
	for range 50 { // would be handed the same memory
		m, err := Private(1 << 16)
		require.NoError(t, err)
		m.Word(1<<16 - 8).Store(1 << 40)
	}
	for i, tail := range tails {
		require.Equal(t, uint64(i), tail.Word(0).Load())
	}
}

func TestPrivateRefusesSizes(t *testing.T) {
	for _, n := range []int{0, -1, maxBytes + 1, maxBytes} {
		_, err := Private(n)
		require.Error(t, err, "%d bytes", n)
	}
}

func FuzzHandle(f *testing.F) {
	f.Add(handle{pid: 7, fd: 3, bytes: 64, dev: 1, ino: 2, nonce: [16]byte{9}}.encode())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := decodeHandle(b)
		if err != nil {
			return
		}
		require.Positive(t, h.pid)
		require.GreaterOrEqual(t, h.fd, 0)
		require.True(t, h.bytes > 0 && h.bytes <= maxBytes)
		require.Equal(t, b, h.encode())
	})
}
