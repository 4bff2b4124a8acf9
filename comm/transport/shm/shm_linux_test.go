package shm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/comm/transport"
	"github.com/goccl/goccl/comm/transport/transporttest"
)

func open(testing.TB) transport.Transport { return New() }

func TestContract(t *testing.T) {
	transporttest.Run(t, transporttest.Traits{Memory: true}, open)
}

func TestCanConnect(t *testing.T) {
	tr := New()
	a, b := &transport.Peer{Rank: 0, HostID: 5, Shm: true}, &transport.Peer{Rank: 1, HostID: 5, Shm: true}
	require.NoError(t, tr.CanConnect(a, b))
	b.Shm = false
	require.ErrorContains(t, tr.CanConnect(a, b), "rank 1 cannot make shared segments")
	b.HostID, b.Shm = 6, true
	require.ErrorContains(t, tr.CanConnect(a, b), "host ids 5 and 6")
	require.NoError(t, Available())
}
