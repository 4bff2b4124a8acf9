package socket

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/transport/transporttest"
)

func TestHello(t *testing.T) {
	c := transporttest.NewConn(7, 3, 4, transporttest.Spec)
	h := hello{token: token{1, 2, 3}, conn: c}
	g, err := decodeHello(h.encode())
	require.NoError(t, err)
	require.Equal(t, h.token, g.token)
	require.NoError(t, g.same(c))
	require.Equal(t, "gccsock1", string(h.encode()[:8]))
	for i := range helloBytes { // every byte counts
		b := h.encode()
		b[i] ^= 0x40
		g, err := decodeHello(b)
		require.False(t, err == nil && g.token == h.token && g.same(c) == nil, "byte %d", i)
	}
}

func FuzzHello(f *testing.F) {
	c := transporttest.NewConn(7, 3, 4, transporttest.Spec)
	f.Add(hello{token: token{9}, conn: c}.encode())
	f.Add([]byte("GET / HTTP/1.1\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := decodeHello(b)
		if err == nil && g.same(c) == nil {
			require.Equal(t, hello{token: g.token, conn: c}.encode(), b)
		}
	})
}

func TestHeader(t *testing.T) {
	var b [frameBytes]byte
	h := header{length: 4096, sig: 1 << 31, step: 1<<40 + 5}
	h.put(b[:])
	require.Equal(t, h, readHeader(b[:]))
	require.NoError(t, h.check(1<<40+5, 4096))
	require.ErrorIs(t, h.check(1<<40+6, 4096), goccl.ErrMismatch)
	require.ErrorIs(t, h.check(1<<40+5, 4095), goccl.ErrMismatch)
	h.length = goodbye
	require.NoError(t, h.check(1<<40+5, 64))
}

func FuzzHeader(f *testing.F) {
	f.Add(make([]byte, frameBytes), uint64(0))
	f.Fuzz(func(t *testing.T, b []byte, step uint64) {
		if len(b) != frameBytes {
			return
		}
		h := readHeader(b)
		if h.check(step, 640) == nil {
			require.Equal(t, step, h.step)
			require.True(t, h.length <= 640 || h.length == goodbye)
		}
	})
}

func TestAddrs(t *testing.T) {
	for _, addrs := range [][]string{nil, {"127.0.0.1:80"}, {"10.0.0.1:1", "[2001:db8::1]:65535", "host-7:9"}} {
		got, err := decodeAddrs(encodeAddrs(addrs))
		require.NoError(t, err)
		require.Equal(t, addrs, got)
	}
}

func FuzzAddrs(f *testing.F) {
	f.Add(encodeAddrs([]string{"10.0.0.1:1", "[::1]:2"}))
	f.Add([]byte{1, 255, 'a'})
	f.Fuzz(func(t *testing.T, b []byte) {
		if addrs, err := decodeAddrs(b); err == nil {
			require.Equal(t, b, encodeAddrs(addrs))
		}
	})
}
