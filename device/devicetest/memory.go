package devicetest

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
)

// addr is the address of host memory. Config.Host keeps it in place.
func addr(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// pattern fills b with bytes that differ by place and by seed.
func pattern(b []byte, seed int) []byte {
	for i := range b {
		b[i] = byte(i*7 + i>>8*13 + seed*101 + 1)
	}
	return b
}

// put copies b to the device and waits.
func put(t *testing.T, s device.Stream, dst uintptr, b []byte) {
	t.Helper()
	require.NoError(t, copier(t, s).Copy(dst, addr(b), len(b)))
	require.NoError(t, s.Sync(t.Context()))
}

// get copies memory of the device to b and waits.
func get(t *testing.T, s device.Stream, b []byte, src uintptr) []byte {
	t.Helper()
	require.NoError(t, copier(t, s).Copy(addr(b), src, len(b)))
	require.NoError(t, s.Sync(t.Context()))
	return b
}

func copier(t *testing.T, s device.Stream) device.Copier {
	t.Helper()
	c, ok := s.(device.Copier)
	require.True(t, ok, "streams of %T cannot copy", s)
	return c
}

// Memory that was used and freed comes back zeroed, so it is made and dirtied
// several times over.
func memoryIsZero(t *testing.T, c Config) {
	d := c.open(t)
	s := stream(t, d)
	for _, bytes := range []int{1, 255, 4096, 3<<20 + 5} {
		host := c.Host(t, d, bytes)
		for round := range 3 {
			a, err := d.Alloc(bytes)
			require.NoError(t, err)
			b, err := d.Alloc(bytes)
			require.NoError(t, err)
			require.Zero(t, a.Addr()%256, "%#x", a.Addr())
			require.GreaterOrEqual(t, a.Bytes(), bytes)
			require.True(t, a.Addr()+uintptr(bytes) <= b.Addr() || b.Addr()+uintptr(bytes) <= a.Addr(), "two allocations share bytes")
			require.Equal(t, make([]byte, bytes), get(t, s, host, a.Addr()), "%d bytes, round %d", bytes, round)
			put(t, s, a.Addr(), pattern(host, round))
			put(t, s, b.Addr(), pattern(host, round+50))
			require.Equal(t, pattern(make([]byte, bytes), round), get(t, s, host, a.Addr()))
			require.NoError(t, a.Free())
			require.NoError(t, b.Free())
		}
	}
}

func sizesAreChecked(t *testing.T, c Config) {
	d := c.open(t)
	for _, bytes := range []int{0, -1} {
		_, err := d.Alloc(bytes)
		require.ErrorIs(t, err, goccl.ErrInvalid, "%d bytes", bytes)
	}
}

func closeIsIdempotent(t *testing.T, c Config) {
	d := c.Open(t)
	m, err := d.Alloc(64)
	require.NoError(t, err)
	s, err := d.NewStream(0)
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, m.Free())
		require.NoError(t, s.Close())
	}
	require.NoError(t, d.Close())
	require.NoError(t, d.Close())
	_, err = d.Alloc(64)
	require.ErrorIs(t, err, goccl.ErrClosed)
	_, err = d.NewStream(0)
	require.ErrorIs(t, err, goccl.ErrClosed)
}

func closeInUse(t *testing.T, c Config) {
	d := c.open(t)
	m := alloc(t, d, 64)
	require.ErrorIs(t, d.Close(), goccl.ErrInvalid)
	s := stream(t, d)
	require.NoError(t, m.Free())
	require.ErrorIs(t, d.Close(), goccl.ErrInvalid)
	require.NoError(t, s.Sync(t.Context()), "a refused Close changes nothing")
}

// A fill comes after the copy before it and before the one behind it.
func streamFills(t *testing.T, c Config) {
	d := c.open(t)
	s := stream(t, d)
	f, ok := s.(device.Filler)
	require.True(t, ok, "streams of %T cannot fill", s)
	const bytes = 5000
	m := alloc(t, d, bytes)
	in, out := pattern(c.Host(t, d, bytes), 4), c.Host(t, d, bytes)
	require.NoError(t, copier(t, s).Copy(m.Addr(), addr(in), bytes))
	require.NoError(t, f.Fill(m.Addr()+3, 0xa5, bytes-10))
	require.NoError(t, f.Fill(m.Addr(), 0, 0))
	get(t, s, out, m.Addr())
	for i := 3; i < bytes-7; i++ {
		in[i] = 0xa5
	}
	require.Equal(t, in, out)
}
