package shm

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/transport"
	"github.com/goccl/goccl/comm/transport/transporttest"
	"github.com/goccl/goccl/internal/leak"
	"github.com/goccl/goccl/internal/spin"
	"github.com/goccl/goccl/internal/testproc"
)

func TestMain(m *testing.M) {
	testproc.Enter(map[string]testproc.Rank{"echo": transporttest.Echo(func() (transport.Transport, error) { return New(), nil })})
	os.Exit(leak.Check(m))
}

func open(testing.TB) transport.Transport { return New() }

func TestContract(t *testing.T) {
	transporttest.Run(t, transporttest.Traits{Memory: true}, open)
}

func TestContractBetweenProcesses(t *testing.T) { transporttest.RunProcesses(t, "echo", open) }

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

// A pid may be given to another process: the start time tells them apart.
func TestC80PeerOfAnEarlierProcess(t *testing.T) {
	leak.VerifyNone(t)
	tr := New()
	defer tr.Close()
	p := transporttest.NewPeer(t, 1, tr)
	p.PID = os.Getppid()
	start, err := startTime(p.PID)
	require.NoError(t, err)
	p.Blob[name] = encodeStart(start + 1)
	_, err = tr.SetupRecv(transporttest.Context(t), transporttest.NewConn(0, 1, 0, transporttest.Spec), p)
	require.ErrorIs(t, err, goccl.ErrPeerLost)
	p.Blob[name] = nil
	_, err = tr.SetupRecv(transporttest.Context(t), transporttest.NewConn(0, 1, 0, transporttest.Spec), p)
	require.ErrorIs(t, err, goccl.ErrMismatch)
}

func TestParseStat(t *testing.T) {
	text := "12 (a) b (c) Z 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21"
	state, start, err := parseStat(text)
	require.NoError(t, err)
	require.Equal(t, "Z", state)
	require.Equal(t, uint64(4711), start)
	for _, bad := range []string{"", "12 (a", "12 (a) R 1 2", "12 (a) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 x"} {
		_, _, err := parseStat(bad)
		require.Error(t, err, "%q", bad)
	}
}

// The slow way, for kernels without pidfds, sees the same end.
func TestProcessTableShowsTheEnd(t *testing.T) {
	leak.VerifyNone(t)
	p := testproc.Start(t, "echo", 1, testproc.Options{}).Procs[0]
	start, err := startTime(p.PID())
	require.NoError(t, err)
	ended := make(chan bool, 1)
	go func() { ended <- handle{}.wait(transporttest.Context(t), &process{pid: p.PID(), start: start}) }()
	p.Kill(t)
	require.True(t, <-ended)
}

func BenchmarkPingPongProcesses(b *testing.B) {
	tr := New()
	defer tr.Close()
	transporttest.PingPong(b, transporttest.StartEcho(b, "echo", tr, transporttest.Inline), spin.Policy{})
}

func BenchmarkPingPongGoroutines(b *testing.B) {
	transporttest.PingPongLocal(b, transporttest.NewWorld(b, 2, open), spin.Policy{Local: true})
}
