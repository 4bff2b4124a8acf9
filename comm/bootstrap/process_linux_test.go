package bootstrap

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// family is a world whose rank 0 is in this process and all others are children.
type family struct {
	session  *Session
	events   *eventLog
	children []*child // by rank; none for 0
}

func newFamily(t *testing.T, n int) *family {
	t.Helper()
	ctx := testContext(t)
	root := openRoot(t, "tcp", RootOptions{Size: n})
	serveRoot(ctx, t, root)
	text, err := root.ID().MarshalText()
	require.NoError(t, err)
	f := &family{events: &eventLog{ch: make(chan Event, 64)}, children: make([]*child, n)}
	for rank := 1; rank < n; rank++ {
		f.children[rank] = startChild(t, "rank", []string{"ID=" + string(text), "RANK=" + strconv.Itoa(rank), "SIZE=" + strconv.Itoa(n)}, nil)
	}
	f.session, err = Join(ctx, root.ID(), Config{Rank: 0, Size: n, OnEvent: f.events.add})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.session.Close()) })
	for rank := 1; rank < n; rank++ {
		require.Contains(t, f.children[rank].line(t), "joined 127.0.0.1:")
	}
	return f
}

// A killed process says nothing; the hub tells everybody which rank it was.
func TestC18KilledProcessIsNamedOnAllRanks(t *testing.T) {
	f := newFamily(t, 4)
	killed := f.children[2].cmd.Process
	require.NoError(t, killed.Kill())
	e := f.events.next(t)
	require.Equal(t, Lost, e.Kind)
	require.Equal(t, 2, e.Rank)
	require.Equal(t, killed.Pid, e.PID)
	for _, rank := range []int{1, 3} {
		require.Equal(t, "event lost 2", f.children[rank].line(t))
	}
	// A normal end is something else.
	require.NoError(t, f.children[1].stdin.Close())
	e = f.events.next(t)
	require.Equal(t, Left, e.Kind)
	require.Equal(t, 1, e.Rank)
}

// A stopped process is not lost: a debugger must not kill the job. It shows by not
// answering a Query, and goes on when it is continued.
func TestStoppedProcessIsSilentNotLost(t *testing.T) {
	f := newFamily(t, 3)
	stopped := f.children[1].cmd.Process
	require.NoError(t, stopped.Signal(syscall.SIGSTOP))
	t.Cleanup(func() { _ = stopped.Signal(syscall.SIGCONT) })
	require.Eventually(t, func() bool { return procState(stopped.Pid) == 'T' }, watchdog, 1e6)

	ctx, cancel := context.WithCancel(testContext(t))
	answers := make(chan map[int][]byte)
	go func() { answers <- f.session.Query(ctx) }()
	require.Eventually(t, func() bool {
		f.session.mu.Lock()
		defer f.session.mu.Unlock()
		q := f.session.queries[1]
		return q != nil && len(q.answers) == 2
	}, watchdog, 1e6)
	cancel()
	got := <-answers
	require.NotContains(t, got, 1)
	require.Equal(t, "status of 2", string(got[2]))
	require.Empty(t, f.events.ch)

	require.NoError(t, stopped.Signal(syscall.SIGCONT))
	got = f.session.Query(testContext(t))
	require.Equal(t, "status of 1", string(got[1]))
}

// procState returns the state letter of a process, 'T' for stopped.
func procState(pid int) byte {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	i := bytes.LastIndexByte(b, ')')
	if err != nil || i < 0 || i+2 >= len(b) {
		return 0
	}
	return b[i+2]
}

// C15, C23: whoever runs out of descriptors says so, with the limit.
func TestC23OutOfFilesIsSaid(t *testing.T) {
	c := startChild(t, "files", nil, nil)
	rank := c.line(t)
	require.Contains(t, rank, "rank: goccl: rank 0: join: peer 0 (127.0.0.1:")
	require.Contains(t, rank, "too many open files: the limit of this process is 40 (ulimit -n)")
	root := c.line(t)
	require.Contains(t, root, "it could not accept connections: too many open files: the limit of this process is 40")
	require.Contains(t, root, "missing ranks 0, 1")
	require.NoError(t, c.cmd.Wait())
}
