package socket

import (
	"os"
	"testing"

	"github.com/goccl/goccl/comm/transport"
	"github.com/goccl/goccl/comm/transport/transporttest"
	"github.com/goccl/goccl/internal/leak"
	"github.com/goccl/goccl/internal/spin"
	"github.com/goccl/goccl/internal/testproc"
)

func TestMain(m *testing.M) {
	testproc.Enter(map[string]testproc.Rank{"echo": transporttest.Echo(func() (transport.Transport, error) { return New(Config{}) })})
	os.Exit(leak.Check(m))
}

func TestContractBetweenProcesses(t *testing.T) { transporttest.RunProcesses(t, "echo", open) }

func BenchmarkPingPongProcesses(b *testing.B) {
	tr := open(b)
	defer tr.Close()
	transporttest.PingPong(b, transporttest.StartEcho(b, "echo", tr, transporttest.Inline), spin.Policy{Network: true})
}
