package transport_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/transport"
	"github.com/goccl/goccl/comm/transport/inproc"
	"github.com/goccl/goccl/comm/transport/net/socket"
	"github.com/goccl/goccl/comm/transport/shm"
)

func TestSelectTakesTheFirstThatConnects(t *testing.T) {
	net, err := socket.New(socket.Config{})
	require.NoError(t, err)
	defer net.Close()
	all := []transport.Transport{inproc.New(), shm.New(), net}
	peer := func(rank int, host, process uint64, addrs ...string) *transport.Peer {
		return &transport.Peer{Rank: rank, Host: "h", HostID: host, Process: process, Shm: true, Addrs: addrs}
	}
	tests := []struct {
		name     string
		src, dst *transport.Peer
		want     string
	}{
		{"one process", peer(0, 1, 5), peer(1, 1, 5), "inproc"},
		{"one host", peer(0, 1, 5), peer(1, 1, 6), "shm"},
		{"two hosts", peer(0, 1, 5), peer(1, 2, 6, "10.0.0.1:9"), "net/socket"},
	}
	for _, test := range tests {
		got, err := transport.Select(all, test.src, test.dst)
		require.NoError(t, err, test.name)
		require.Equal(t, test.want, got.Name(), test.name)
	}
	_, err = transport.Select(all, peer(3, 1, 5), peer(4, 2, 6, "127.0.0.1:9"))
	require.ErrorIs(t, err, goccl.ErrUnsupported)
	for _, why := range []string{"inproc: ranks 3 and 4 are different processes", "shm: ranks 3 and 4 share no memory", "net/socket: rank 4 is on another host"} {
		require.ErrorContains(t, err, why)
	}
	var e *goccl.Error
	require.True(t, errors.As(err, &e))
	require.Equal(t, []int{3, 4}, []int{e.Rank, e.Peer})
	_, err = transport.Select(nil, peer(0, 1, 5), peer(1, 1, 5))
	require.ErrorIs(t, err, goccl.ErrUnsupported)
}

func TestConnString(t *testing.T) {
	require.Equal(t, "Channel 03/1 : 4 -> 5", transport.Conn{Channel: 3, Index: 1, Src: 4, Dst: 5}.String())
}
