//go:build linux

package launch_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/dist/launch"
	"github.com/goccl/goccl/dist/store"
	"github.com/goccl/goccl/internal/leak"
)

// The test binary is also the ranks: roleEnv says what one does. Descriptor 4 is
// a pipe to the test; its end at the reader says that nobody holds it any more.
const (
	roleEnv = "LAUNCH_TEST_ROLE"
	pipeFD  = 4
	// quickExit spares ranks the second that the race detector waits at their end.
	quickExit = "GORACE=atexit_sleep_ms=0"
	// watchdog ends a test that hangs, and a rank whose test is gone.
	watchdog = 60 * time.Second
)

var roles = map[string]func() error{
	"environment": environment,
	"rendezvous":  rendezvous,
	"wait":        func() error { return ready("") },
	"stubborn":    func() error { signal.Ignore(syscall.SIGTERM, syscall.SIGINT); return ready("") },
	"parent":      parent,
	"report":      report,
	"launcher":    launcher,
	"nested":      nested,
}

func TestMain(m *testing.M) {
	role := roles[os.Getenv(roleEnv)]
	if role == nil {
		os.Exit(leak.Check(m))
	}
	if err := role(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// ready tells the test and then waits to be ended.
func ready(more string) error {
	say("ready " + os.Getenv("RANK") + more)
	time.Sleep(watchdog)
	return errors.New("nobody ended this rank")
}

func say(line string) {
	_, _ = fmt.Fprintln(os.NewFile(pipeFD, "pipe"), line) // a test that is gone needs no report
}

func environment() error {
	for _, k := range []string{"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "GOMAXPROCS", "GOCCL_JOB_ID", "GOCCL_LISTEN_FD", "EXTRA"} {
		fmt.Printf("%s=%s\n", k, os.Getenv(k))
	}
	return nil
}

// rendezvous is a job that meets at the listener it was handed.
func rendezvous() error {
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	rank, job := os.Getenv("RANK"), os.Getenv(launch.EnvJobID)
	socket, _ := os.Readlink("/proc/self/fd/3") // on rank 0
	l, ok, err := launch.InheritedListener(os.LookupEnv)
	if err != nil {
		return err
	}
	if ok != (rank == "0") {
		return fmt.Errorf("rank %s: listener inherited: %v", rank, ok)
	}
	if !ok {
		c, err := store.DialTCP(ctx, net.JoinHostPort(os.Getenv("MASTER_ADDR"), os.Getenv("MASTER_PORT")), store.DialConfig{Job: job, Name: "rank " + rank})
		if err != nil {
			return err
		}
		v, err := c.Get(ctx, "from 0")
		fmt.Printf("rank %s got %s\n", rank, v)
		return errors.Join(err, c.Close())
	}
	if _, _, err := launch.InheritedListener(os.LookupEnv); err == nil {
		return errors.New("the listener was given twice")
	}
	if err := notInherited(socket); err != nil {
		return err
	}
	s, err := store.Serve(l, store.ServerConfig{Job: job, Clients: 2})
	if err != nil {
		return err
	}
	return errors.Join(s.Store().Set(ctx, "from 0", []byte("value "+job)), s.Shutdown(ctx))
}

// notInherited looks for socket among what a child of this rank has open.
func notInherited(socket string) error {
	out, err := exec.Command("sh", "-c", "for f in /proc/$$/fd/*; do readlink $f; done; true").Output()
	if !strings.HasPrefix(socket, "socket:") || strings.Contains(string(out), socket) {
		return fmt.Errorf("a child process inherits the listener %s: %s", socket, out)
	}
	return err
}

// parent starts a process that would outlive it.
func parent() error {
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), roleEnv+"=stubborn", "RANK="+os.Getenv("RANK")+" child")
	child.ExtraFiles = []*os.File{nil, os.NewFile(pipeFD, "pipe")}
	if err := child.Start(); err != nil {
		return err
	}
	return ready("")
}

// report says which signal came.
func report() error {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGUSR1, syscall.SIGUSR2)
	say("ready " + os.Getenv("RANK"))
	select {
	case sig := <-c:
		say(os.Getenv("RANK") + " " + sig.String())
		return nil
	case <-time.After(watchdog):
		return errors.New("no signal came")
	}
}

// launcher is a launcher that gets killed.
func launcher() error {
	job, err := launch.Start(context.Background(), launch.Spec{N: 2, Command: os.Args[:1], Env: []string{roleEnv + "=stubborn"},
		ExtraFiles: []*os.File{os.NewFile(pipeFD, "pipe")}})
	if err != nil {
		return err
	}
	return job.Wait()
}

// nested has the variable of a listener whose file it does not have.
func nested() error {
	_, _, err := launch.InheritedListener(os.LookupEnv)
	return err
}

// pipe reads what ranks say.
type pipe struct {
	r *bufio.Reader
	w *os.File
}

func newPipe(t *testing.T) *pipe {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { r.Close(); w.Close() })
	require.NoError(t, r.SetReadDeadline(time.Now().Add(watchdog)))
	return &pipe{bufio.NewReader(r), w}
}

// started closes the test's own end, so that the pipe ends with its last holder.
func (p *pipe) started(t *testing.T) { require.NoError(t, p.w.Close()) }

func (p *pipe) lines(t *testing.T, n int) []string {
	var got []string
	for range n {
		line, err := p.r.ReadString('\n')
		require.NoError(t, err)
		got = append(got, strings.TrimSuffix(line, "\n"))
	}
	return got
}

// ended returns when all processes that held the pipe are gone.
func (p *pipe) ended(t *testing.T) {
	rest, err := io.ReadAll(p.r)
	require.NoError(t, err)
	require.Empty(t, string(rest))
}

// spec is a job of n ranks with that role.
func spec(role string, n int, p *pipe) launch.Spec {
	s := launch.Spec{N: n, Command: os.Args[:1], Env: []string{roleEnv + "=" + role, quickExit}}
	if p != nil {
		s.ExtraFiles = []*os.File{p.w}
	}
	return s
}

// shell is a job of n ranks that run a script.
func shell(script string, n int) launch.Spec {
	return launch.Spec{N: n, Command: []string{"sh", "-c", script}}
}

func start(t *testing.T, s launch.Spec) *launch.Job {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	j, err := launch.Start(ctx, s)
	if err != nil {
		cancel()
	}
	require.NoError(t, err)
	t.Cleanup(func() {
		cancel()
		j.Stop(syscall.SIGKILL)
		_ = j.Wait()
	})
	return j
}
