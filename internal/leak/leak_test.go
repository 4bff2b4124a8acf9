package leak

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { os.Exit(Check(m)) }

func TestGoroutineIsSeen(t *testing.T) {
	before := snapshot()
	release := make(chan struct{})
	go func() { <-release }()
	left := wait(before, 0)
	require.Len(t, left, 1)
	require.Contains(t, left[0].text, "TestGoroutineIsSeen")
	require.Contains(t, describe(left), "goroutine ")
	close(release)
	require.Empty(t, wait(before, settle))
}

// recorder is a testing.TB that notes failures and clean-ups.
type recorder struct {
	testing.TB
	cleanup func()
	errors  []string
}

func (r *recorder) Helper()          {}
func (r *recorder) Cleanup(f func()) { r.cleanup = f }
func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func TestVerifyNone(t *testing.T) {
	r := &recorder{TB: t}
	VerifyNone(r)
	r.cleanup()
	require.Empty(t, r.errors)
}

// The watcher of package os/signal never ends; it is nobody's leak.
func TestSignalWatcherIsNoLeak(t *testing.T) {
	before := snapshot()
	c := make(chan os.Signal, 1)
	signal.Notify(c, os.Interrupt)
	signal.Stop(c)
	require.Empty(t, wait(before, settle))
}

// The run of a package whose test leaves a goroutine behind fails and shows it.
func TestCheckFailsTheRun(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestLeaveBehind$")
	cmd.Env = append(os.Environ(), leaveBehind+"=1")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, "%s", out)
	require.Equal(t, 1, exit.ExitCode())
	require.Contains(t, string(out), "leak: the tests passed but left behind:")
	require.Contains(t, string(out), "leak.TestLeaveBehind")
}

// leaveBehind makes TestLeaveBehind leak; only TestCheckFailsTheRun sets it.
const leaveBehind = "GOCCL_TEST_LEAVE_BEHIND"

func TestLeaveBehind(t *testing.T) {
	_, leave := os.LookupEnv(leaveBehind)
	blocked := make(chan struct{})
	if leave {
		settle = 0
		go func() { <-blocked }()
	}
	require.NotNil(t, blocked)
}
