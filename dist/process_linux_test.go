package dist_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/testproc"
)

func TestProcessesOverSharedMemory(t *testing.T) {
	endsWell(t, start(t, 4, order{Do: "collectives"}))
}

func TestProcessesOverSockets(t *testing.T) {
	endsWell(t, start(t, 3, order{Do: "collectives"}, "GOCCL_SHM_DISABLE=1"))
}

func TestProcessesWithoutALauncher(t *testing.T) {
	endsWell(t, start(t, 2, order{Do: "collectives", Addr: freePort(t)}))
}

// survivors returns the last line of each process but the given one.
func survivors(t *testing.T, g *testproc.Group, gone int) []string {
	t.Helper()
	var lines []string
	for _, p := range g.Procs {
		if p.Rank == gone {
			continue
		}
		line := p.Next(t)
		for !strings.HasPrefix(line, "ended: ") {
			line = p.Next(t)
		}
		require.NoError(t, p.Wait(t), p.Output())
		lines = append(lines, strings.TrimPrefix(line, "ended: "))
	}
	return lines
}

func nameOf(t *testing.T, p *testproc.Proc) string {
	host, err := os.Hostname()
	require.NoError(t, err)
	return fmt.Sprintf("rank %d (host %s, pid %d)", p.Rank, host, p.PID())
}

func TestC80KilledRankIsNamedByAll(t *testing.T) {
	for _, victim := range []int{1, 0} {
		for _, env := range []string{"GOCCL_SHM_DISABLE=0", "GOCCL_SHM_DISABLE=1"} {
			g := start(t, 3, order{Do: "loop"}, env)
			g.WaitReady(t)
			g.Procs[victim].Kill(t)
			lines := survivors(t, g, victim)
			require.Equal(t, lines[0], lines[1])
			require.Contains(t, lines[0], "goccl: "+nameOf(t, g.Procs[victim])+" is gone", env)
		}
	}
}

func TestC80StoppedRankIsReportedAndEndedAtTheTimeout(t *testing.T) {
	t.Parallel()
	g := start(t, 3, order{Do: "loop"}, "GOCCL_TIMEOUT=3s", "GOCCL_DUMP_DIR="+t.TempDir())
	g.WaitReady(t)
	g.Procs[2].Stop(t)
	for _, p := range g.Procs[:2] {
		line := p.Next(t)
		require.Contains(t, line, "blocked: ")
		require.Contains(t, line, "rank 2")
		require.Contains(t, line, "stopped")
	}
	lines := survivors(t, g, 2)
	require.Equal(t, lines[0], lines[1])
	require.Contains(t, lines[0], "timed out after 3s")
	require.Contains(t, lines[0], "rank 2")
	require.Contains(t, lines[0], "stopped")
	require.Contains(t, g.Procs[0].Output(), "operation is blocked")
}

func TestPanicReachesTheOtherProcesses(t *testing.T) {
	g := start(t, 3, order{Do: "panic"})
	lines := survivors(t, g, -1)
	host, err := os.Hostname()
	require.NoError(t, err)
	for _, line := range lines {
		require.Contains(t, line, fmt.Sprintf("goccl: rank 1 (%s, pid %d) failed: panic: out of ideas", host, g.Procs[1].PID()))
	}
}

func TestC10SecondProcessOfARankIsRefused(t *testing.T) {
	for _, ranks := range [][]int{{0, 1, 1}, {0, 1, 0}} {
		g := start(t, 3, order{Do: "hold", Size: 2, Ranks: ranks, Addr: freePort(t)}, "GOCCL_TIMEOUT=30s")
		lines := g.WaitReady(t)
		refused := -1
		for i, line := range lines {
			if line != "joined" {
				require.Equal(t, -1, refused, lines)
				refused = i
			}
		}
		require.NotEqual(t, -1, refused)
		require.Contains(t, lines[refused], fmt.Sprintf("rank %d of the job is taken by host ", ranks[refused]))
		for i, p := range g.Procs {
			if ranks[i] == ranks[refused] {
				require.Contains(t, lines[refused], fmt.Sprintf("pid %d", p.PID()), "both are named")
			}
			if i != refused {
				p.Send(t, "go")
			}
		}
		for i, p := range g.Procs {
			if i != refused {
				require.Equal(t, "ended: ", p.Next(t), p.Output())
			}
		}
		g.Wait(t)
	}
}

func TestC09MissingProcessIsNamed(t *testing.T) {
	t.Parallel()
	g := start(t, 2, order{Do: "hold", Size: 4, Ranks: []int{0, 2}}, "GOCCL_TIMEOUT=1s")
	for _, line := range survivors(t, g, -1) {
		require.Contains(t, line, "missing ranks 1, 3")
	}
}

func TestC09MissingRankZeroIsNamed(t *testing.T) {
	t.Parallel()
	g := start(t, 1, order{Do: "hold", Size: 2, Ranks: []int{1}, Addr: freePort(t)}, "GOCCL_TIMEOUT=500ms")
	line := survivors(t, g, -1)[0]
	require.Contains(t, line, "rank 1: init:")
	require.Contains(t, line, "missing rank 0")
}

func TestC12RankThatFailsInInitEndsAll(t *testing.T) {
	t.Parallel()
	g := start(t, 3, order{Do: "fail in init"})
	for r, line := range survivors(t, g, -1) {
		require.Contains(t, line, "out of memory", "rank %d", r)
		if r != 1 {
			require.Contains(t, line, fmt.Sprintf("rank 1 (host %s, pid %d)", hostname(t), g.Procs[1].PID()), "rank %d", r)
		}
	}
}

func hostname(t *testing.T) string {
	host, err := os.Hostname()
	require.NoError(t, err)
	return host
}

func TestC29RankZeroLeavesFirst(t *testing.T) {
	g := start(t, 3, order{Do: "first out"})
	require.Equal(t, []string{"leaving", "waiting", "waiting"}, g.WaitReady(t))
	g.Procs[1].Send(t, "go")
	g.Procs[2].Send(t, "go")
	endsWell(t, g)
}
