package inproc

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/comm/transport"
	"github.com/goccl/goccl/comm/transport/transporttest"
	"github.com/goccl/goccl/internal/leak"
	"github.com/goccl/goccl/internal/spin"
)

func TestMain(m *testing.M) { os.Exit(leak.Check(m)) }

func open(testing.TB) transport.Transport { return New() }

func TestContract(t *testing.T) {
	transporttest.Run(t, transporttest.Traits{Memory: true}, open)
	registry.mu.Lock()
	defer registry.mu.Unlock()
	require.Empty(t, registry.pieces, "the registry keeps what was closed")
}

func TestCanConnect(t *testing.T) {
	tr := New()
	a, b := &transport.Peer{Rank: 0, Process: 5, PID: 9}, &transport.Peer{Rank: 1, Process: 5, PID: 9}
	require.NoError(t, tr.CanConnect(a, b))
	b.Process = 6
	require.ErrorContains(t, tr.CanConnect(a, b), "ranks 0 and 1 are different processes")
	a.Process, b.Process = 0, 0
	require.Error(t, tr.CanConnect(a, b), "ranks that do not say which process they are")
}

func BenchmarkPingPong(b *testing.B) {
	transporttest.PingPongLocal(b, transporttest.NewWorld(b, 2, open), spin.Policy{Local: true})
}
