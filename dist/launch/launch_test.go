//go:build linux

package launch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/dist/launch"
)

func TestEnvironment(t *testing.T) {
	t.Setenv("GOMAXPROCS", "")
	t.Setenv("EXTRA", "outer")
	t.Setenv("RANK", "77")
	t.Setenv("GOCCL_LISTEN_FD", "55")
	var out bytes.Buffer
	s := spec("environment", 3, nil)
	s.Env = append(s.Env, "EXTRA=inner", "WORLD_SIZE=9")
	s.Stdout, s.Prefix, s.Job = &out, true, "j1"
	require.NoError(t, start(t, s).Wait())
	procs := max(1, runtime.GOMAXPROCS(0)/3)
	for rank := range 3 {
		want := []string{
			fmt.Sprint("RANK=", rank), "WORLD_SIZE=3", fmt.Sprint("LOCAL_RANK=", rank), "LOCAL_WORLD_SIZE=3",
			"MASTER_ADDR=127.0.0.1", fmt.Sprint("GOMAXPROCS=", procs), "GOCCL_JOB_ID=j1", "GOCCL_LISTEN_FD=", "EXTRA=inner",
		}
		if rank == 0 {
			want[7] += "3"
		}
		var got []string
		for line := range strings.Lines(out.String()) {
			if text, ok := strings.CutPrefix(line, fmt.Sprintf("[%d] ", rank)); ok {
				got = append(got, strings.TrimSuffix(text, "\n"))
			}
		}
		require.Equal(t, want, got)
	}
}

func TestGOMAXPROCSOfTheUserStays(t *testing.T) {
	t.Setenv("GOMAXPROCS", "5")
	for _, env := range []string{"", "GOMAXPROCS=6"} {
		var out bytes.Buffer
		s := shell("echo $GOMAXPROCS", 1)
		want := "5\n"
		if env != "" {
			s.Env, want = []string{env}, "6\n"
		}
		s.Stdout = &out
		require.NoError(t, start(t, s).Wait())
		require.Equal(t, want, out.String())
	}
}

func TestJobIDsDiffer(t *testing.T) {
	a, b := start(t, shell("exit 0", 1)), start(t, shell("exit 0", 1))
	require.NotEmpty(t, a.ID())
	require.NotEqual(t, a.ID(), b.ID())
}

// C31: the port is never free between the launcher and rank 0. C100: nothing that
// a rank starts inherits it.
func TestC31C100RendezvousIsHandedOver(t *testing.T) {
	var out, errs bytes.Buffer
	s := spec("rendezvous", 3, nil)
	s.Stdout, s.Stderr, s.Job = &out, &errs, "j2"
	require.NoError(t, start(t, s).Wait(), &errs)
	got := strings.Split(strings.TrimSpace(out.String()), "\n")
	slices.Sort(got)
	require.Equal(t, []string{"rank 1 got value j2", "rank 2 got value j2"}, got)
}

// C100: the launcher keeps no copy of what it handed over.
func TestC100PortIsFreeAfterTheJob(t *testing.T) {
	var out bytes.Buffer
	s := shell("echo $MASTER_PORT", 2)
	s.Stdout = &out
	require.NoError(t, start(t, s).Wait())
	port, _, _ := strings.Cut(out.String(), "\n")
	l, err := net.Listen("tcp", "127.0.0.1:"+port)
	require.NoError(t, err)
	require.NoError(t, l.Close())
}

func TestInheritedListenerRefusesOtherFiles(t *testing.T) {
	env := map[string]string{"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
	lookup := func(k string) (string, bool) { v, ok := env[k]; return v, ok }
	_, ok, err := launch.InheritedListener(lookup)
	require.NoError(t, err)
	require.False(t, ok, "without the variable there is none")
	other, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer other.Close()
	f, err := other.(*net.TCPListener).File()
	require.NoError(t, err)
	defer f.Close()
	for _, fd := range []string{"x", "-1", "2", "9999", fmt.Sprint(f.Fd())} {
		env[launch.EnvListenFD] = fd
		_, _, err := launch.InheritedListener(lookup)
		require.ErrorIs(t, err, goccl.ErrInvalid, fd)
		require.ErrorContains(t, err, launch.EnvListenFD+"="+fd)
	}
	require.ErrorContains(t, errOf(launch.InheritedListener(lookup)), "not on 127.0.0.1:1")
	_, err = f.Stat()
	require.NoError(t, err, "a refused descriptor stays open: it is someone else's")
}

func errOf(_ net.Listener, _ bool, err error) error { return err }

func TestC97FirstFailureStopsAll(t *testing.T) {
	p := newPipe(t)
	s := shell(`echo "before $RANK" >&2; if [ $RANK = 1 ]; then echo ready >&4; echo the reason >&2; exit 7; fi; exec sleep 60`, 3)
	s.ExtraFiles = []*os.File{p.w}
	var out bytes.Buffer
	s.Stdout, s.Stderr = &out, &out
	j := start(t, s)
	p.started(t)
	err := j.Wait()
	var exit *launch.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, launch.ExitError{Rank: 1, PID: j.PIDs()[1], Code: 7, Tail: exit.Tail}, *exit)
	require.Equal(t, "before 1\nthe reason\n", exit.Tail)
	require.ErrorIs(t, err, goccl.ErrPeerLost)
	require.Equal(t, fmt.Sprintf("goccl: rank 1 (pid %d) exited with code 7", exit.PID), err.Error())
	require.Equal(t, 7, launch.ExitCode(err))
	require.Equal(t, []string{"ready"}, p.lines(t, 1))
	p.ended(t)
	require.Contains(t, out.String(), "the reason\n")
}

func TestKilledRankIsTheCause(t *testing.T) {
	p := newPipe(t)
	j := start(t, spec("wait", 4, p))
	p.started(t)
	p.lines(t, 4)
	require.NoError(t, j.Kill(2, syscall.SIGKILL))
	err := j.Wait()
	var exit *launch.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 2, exit.Rank)
	require.Equal(t, syscall.SIGKILL, exit.Signal)
	require.Equal(t, 137, launch.ExitCode(err))
	require.ErrorContains(t, err, "killed by signal 9 (killed)")
	p.ended(t)
	require.ErrorIs(t, j.Kill(2, syscall.SIGKILL), os.ErrProcessDone)
	require.ErrorIs(t, j.Kill(4, syscall.SIGKILL), goccl.ErrInvalid)
	require.NoError(t, j.Signal(syscall.SIGTERM), "ranks that have ended need no signal")
}

// What OnStop passes on is there when the signal comes.
func TestOnStopComesBeforeTheSignal(t *testing.T) {
	p := newPipe(t)
	read, write, err := os.Pipe()
	require.NoError(t, err)
	defer read.Close()
	defer write.Close()
	s := shell(`trap 'read why <&5; echo "$why"; exit 0' TERM; echo ready >&4; while :; do sleep 0.01; done`, 2)
	s.ExtraFiles = []*os.File{p.w, read}
	var out bytes.Buffer
	s.Stdout = &out
	var causes []error
	s.OnStop = func(cause error) {
		causes = append(causes, cause)
		fmt.Fprintln(write, cause)
	}
	j := start(t, s)
	p.started(t)
	p.lines(t, 2)
	require.NoError(t, j.Kill(1, syscall.SIGKILL))
	err = j.Wait()
	require.Equal(t, []error{err}, causes)
	require.Equal(t, err.Error()+"\n", out.String())
	p.ended(t)
}

// A stopped rank does not keep the others from being ended, nor itself.
func TestStoppedRankEnds(t *testing.T) {
	p := newPipe(t)
	j := start(t, spec("wait", 2, p))
	p.started(t)
	p.lines(t, 2)
	require.NoError(t, j.Kill(1, syscall.SIGSTOP))
	require.NoError(t, j.Kill(0, syscall.SIGKILL))
	var exit *launch.ExitError
	require.ErrorAs(t, j.Wait(), &exit)
	require.Equal(t, 0, exit.Rank)
	p.ended(t)
}

func TestC94GraceThenKill(t *testing.T) {
	p := newPipe(t)
	s := spec("stubborn", 2, p)
	s.Grace = 50 * time.Millisecond
	j := start(t, s)
	p.started(t)
	p.lines(t, 2)
	j.Stop(syscall.SIGTERM)
	err := j.Wait()
	var stop *launch.StopError
	require.ErrorAs(t, err, &stop)
	require.ErrorIs(t, err, goccl.ErrAborted)
	require.Equal(t, 143, launch.ExitCode(err))
	require.Equal(t, "goccl: all ranks were stopped by signal 15 (terminated)", err.Error())
	p.ended(t)
	j.Stop(syscall.SIGTERM) // after the end: nothing
	require.Equal(t, err, j.Wait())
}

func TestC95GrandchildrenAreKilled(t *testing.T) {
	for name, end := range map[string]func(*launch.Job) error{
		"rank dies": func(j *launch.Job) error { return j.Kill(0, syscall.SIGTERM) },
		"stopped":   func(j *launch.Job) error { j.Stop(syscall.SIGINT); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPipe(t)
			s := spec("parent", 2, p)
			s.Grace = 50 * time.Millisecond // the children do not listen
			j := start(t, s)
			p.started(t)
			require.ElementsMatch(t, []string{"ready 0", "ready 1", "ready 0 child", "ready 1 child"}, p.lines(t, 4))
			require.NoError(t, end(j))
			require.Error(t, j.Wait())
			p.ended(t)
		})
	}
}

// C95: a rank that ends well leaves nothing behind either.
func TestC95LeftBehindAfterSuccess(t *testing.T) {
	p := newPipe(t)
	s := shell("sleep 60 & exit 0", 2)
	s.ExtraFiles = []*os.File{p.w}
	j := start(t, s)
	p.started(t)
	require.NoError(t, j.Wait())
	p.ended(t)
}

// C95: ranks die with the launcher, also when it has no time to say so.
func TestC95LauncherIsKilled(t *testing.T) {
	p := newPipe(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"=launcher")
	cmd.ExtraFiles = []*os.File{nil, p.w}
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	p.started(t)
	p.lines(t, 2)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	p.ended(t)
}

// The ranks' death signal hangs on one thread of the launcher: a busy runtime,
// which retires threads, must not end them.
func TestRanksOutliveOtherThreads(t *testing.T) {
	p := newPipe(t)
	j := start(t, spec("report", 2, p))
	p.started(t)
	p.lines(t, 2)
	for range 20 {
		done := make(chan struct{})
		go func() { // ends its thread
			runtime.LockOSThread()
			close(done)
		}()
		<-done
	}
	require.NoError(t, j.Signal(syscall.SIGUSR2))
	require.NoError(t, j.Wait())
}

func TestC96SignalReachesRanks(t *testing.T) {
	p := newPipe(t)
	j := start(t, spec("report", 2, p))
	p.started(t)
	p.lines(t, 2)
	require.NoError(t, j.Signal(syscall.SIGUSR1))
	require.ElementsMatch(t, []string{"0 user defined signal 1", "1 user defined signal 1"}, p.lines(t, 2))
	require.NoError(t, j.Wait())
}

func TestContextStopsTheJob(t *testing.T) {
	p := newPipe(t)
	why := errors.New("the user had enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	j, err := launch.Start(ctx, spec("wait", 2, p))
	require.NoError(t, err)
	p.started(t)
	p.lines(t, 2)
	cancel(why)
	err = j.Wait()
	require.ErrorIs(t, err, why)
	require.ErrorIs(t, err, goccl.ErrAborted)
	require.Equal(t, 1, launch.ExitCode(err))
	p.ended(t)
	_, err = launch.Start(ctx, spec("wait", 2, nil))
	require.ErrorIs(t, err, why)
}

func TestRefusedSpecs(t *testing.T) {
	for want, s := range map[string]launch.Spec{
		"0 ranks":    {Command: []string{"true"}},
		"no command": {N: 1},
	} {
		_, err := launch.Start(t.Context(), s)
		require.ErrorIs(t, err, goccl.ErrInvalid)
		require.ErrorContains(t, err, want)
	}
	_, err := launch.Start(t.Context(), launch.Spec{N: 2, Command: []string{"no-such-program"}})
	require.ErrorIs(t, err, exec.ErrNotFound)
	require.ErrorContains(t, err, "no-such-program")
}

// A program that cannot run is found when it is started.
func TestStartFails(t *testing.T) {
	path := t.TempDir() + "/broken"
	require.NoError(t, os.WriteFile(path, []byte("\x7fELF nonsense"), 0o700))
	_, err := launch.Start(t.Context(), launch.Spec{N: 2, Command: []string{path}})
	require.ErrorIs(t, err, syscall.ENOEXEC)
	require.ErrorContains(t, err, "rank 0")
	require.ErrorContains(t, err, path)
}

// Many lines from many ranks stay whole and in order.
func TestOutputOfManyRanks(t *testing.T) {
	var out bytes.Buffer
	s := shell(`i=0; while [ $i -lt 200 ]; do echo "$RANK:$i"; echo "$RANK:$i" >&2; i=$((i+1)); done; printf end`, 4)
	s.Stdout, s.Stderr, s.Prefix = &out, &bytes.Buffer{}, true
	require.NoError(t, start(t, s).Wait())
	next := make([]int, 4)
	for line := range strings.Lines(out.String()) {
		var tag, rank, i int
		if n, _ := fmt.Sscanf(line, "[%d] %d:%d\n", &tag, &rank, &i); n == 3 {
			require.Equal(t, rank, tag)
			require.Equal(t, next[rank], i)
			next[rank]++
			continue
		}
		require.Regexp(t, `^\[[0-3]\] end\n$`, line, "the last line gets its newline")
	}
	require.Equal(t, []int{200, 200, 200, 200}, next)
}

// A descendant that left its group and holds the output delays the end by a
// bounded time; the words of the rank itself are all there.
func TestOutputHeldByAStranger(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("needs setsid")
	}
	p := newPipe(t)
	var out bytes.Buffer
	s := shell("setsid sh -c 'echo $$ >&4; exec sleep 60' & read x <&5; echo said", 1)
	hold, release, err := os.Pipe()
	require.NoError(t, err)
	defer hold.Close()
	s.ExtraFiles, s.Stdout = []*os.File{p.w, hold}, &out
	j := start(t, s)
	p.started(t)
	var pid int
	_, err = fmt.Sscan(p.lines(t, 1)[0], &pid)
	require.NoError(t, err)
	require.NoError(t, release.Close())
	err = j.Wait()
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	require.NoError(t, err)
	require.Equal(t, "said\n", out.String())
	p.ended(t)
}

func TestNestedProcessIsTold(t *testing.T) {
	s := shell(`exec 3>&-; exec "$0"`, 1)
	s.Command = append(s.Command, os.Args[0])
	s.Env = []string{roleEnv + "=nested"}
	var errs bytes.Buffer
	s.Stderr = &errs
	require.Equal(t, 1, launch.ExitCode(start(t, s).Wait()))
	require.Contains(t, errs.String(), "descriptor 3 is not the listener")
	require.Contains(t, errs.String(), "go run")
}

func TestRandomDeathsAlwaysEnd(t *testing.T) {
	for range 3 {
		p := newPipe(t)
		s := spec("wait", 3, p)
		s.Grace = time.Millisecond
		j := start(t, s)
		p.started(t)
		p.lines(t, 3)
		for range 4 {
			sig := []os.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGUSR1}[rand.N(4)]
			if err := j.Kill(rand.N(3), sig); err != nil {
				require.ErrorIs(t, err, os.ErrProcessDone)
			}
		}
		j.Stop(syscall.SIGTERM)
		require.Error(t, j.Wait())
		p.ended(t)
	}
}
