//go:build linux

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The test binary is gocclrun if mainEnv is set, and a rank if roleEnv is.
const (
	mainEnv  = "GOCCLRUN_TEST_MAIN"
	roleEnv  = "GOCCLRUN_TEST_ROLE"
	watchdog = 60 * time.Second
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(roleEnv) != "":
		os.Exit(rank(os.Getenv(roleEnv)))
	case os.Getenv(mainEnv) != "":
		main()
	}
	os.Exit(m.Run())
}

// rank says that it is ready and waits for a signal.
func rank(role string) int {
	c := make(chan os.Signal, 1)
	switch role {
	case "stubborn":
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	case "report":
		signal.Notify(c, append(stopping(), passing()...)...)
	}
	fmt.Println("ready")
	select {
	case sig := <-c:
		fmt.Println("got", sig)
		return 0
	case <-time.After(watchdog):
		return 1
	}
}

// run is a running gocclrun.
type run struct {
	cmd  *exec.Cmd
	out  *bufio.Reader
	errs bytes.Buffer
}

func start(t *testing.T, args ...string) *run {
	t.Helper()
	r := &run{cmd: exec.Command(os.Args[0], args...)}
	r.cmd.Env = append(os.Environ(), mainEnv+"=1", "GORACE=atexit_sleep_ms=0") // no second of waiting in race builds
	r.cmd.Stderr = &r.errs
	out, err := r.cmd.StdoutPipe()
	require.NoError(t, err)
	r.out = bufio.NewReader(out)
	require.NoError(t, r.cmd.Start())
	t.Cleanup(func() { _ = r.cmd.Process.Kill() })
	return r
}

func (r *run) lines(t *testing.T, n int) []string {
	var got []string
	for range n {
		line, err := r.out.ReadString('\n')
		require.NoError(t, err, &r.errs)
		got = append(got, strings.TrimSuffix(line, "\n"))
	}
	return got
}

// end returns the rest of the output, the exit code and the last line of errors.
func (r *run) end(t *testing.T) (out string, code int, last string) {
	rest, err := io.ReadAll(r.out)
	require.NoError(t, err)
	_ = r.cmd.Wait() // the exit code is looked at
	errs := strings.Split(strings.TrimSuffix(r.errs.String(), "\n"), "\n")
	return string(rest), r.cmd.ProcessState.ExitCode(), errs[len(errs)-1]
}

func TestC94TermThenExitCode143(t *testing.T) {
	r := start(t, "-n", "2", "-grace", "50ms", "-env", roleEnv+"=stubborn", os.Args[0])
	require.ElementsMatch(t, []string{"[0] ready", "[1] ready"}, r.lines(t, 2))
	require.NoError(t, r.cmd.Process.Signal(syscall.SIGTERM))
	_, code, last := r.end(t)
	require.Equal(t, 143, code)
	require.Equal(t, "gocclrun: all ranks were stopped by signal 15 (terminated)", last)
}

func TestC96SignalsAreForwarded(t *testing.T) {
	for sig, code := range map[syscall.Signal]int{syscall.SIGUSR1: 0, syscall.SIGUSR2: 0, syscall.SIGHUP: 129, syscall.SIGINT: 130} {
		r := start(t, "run", "-n", "2", "-no-prefix", "-env", roleEnv+"=report", "--", os.Args[0])
		require.Equal(t, []string{"ready", "ready"}, r.lines(t, 2))
		require.NoError(t, r.cmd.Process.Signal(sig))
		out, got, last := r.end(t)
		require.Equal(t, strings.Repeat("got "+sig.String()+"\n", 2), out)
		require.Equal(t, code, got, last)
	}
}

func TestC97ExitCodeOfTheFirstFailure(t *testing.T) {
	r := start(t, "-n", "3", "--", "sh", "-c", `if [ $RANK = 2 ]; then echo out of luck; exit 9; fi; exec sleep 60`)
	out, code, last := r.end(t)
	require.Equal(t, "[2] out of luck\n", out)
	require.Equal(t, 9, code)
	require.Regexp(t, `^gocclrun: rank 2 \(pid \d+\) exited with code 9$`, last)
}

func TestRankKilled(t *testing.T) {
	r := start(t, "-n", "2", "sh", "-c", `[ $RANK = 0 ] && kill -KILL $$; exec sleep 60`)
	_, code, last := r.end(t)
	require.Equal(t, 137, code)
	require.Regexp(t, `^gocclrun: rank 0 \(pid \d+\) was killed by signal 9 \(killed\)$`, last)
}

func TestAllWell(t *testing.T) {
	r := start(t, "-n", "2", "-job", "j5", "--", "sh", "-c", "echo $RANK of $WORLD_SIZE in $GOCCL_JOB_ID")
	require.ElementsMatch(t, []string{"[0] 0 of 2 in j5", "[1] 1 of 2 in j5"}, r.lines(t, 2))
	out, code, last := r.end(t)
	require.Empty(t, out)
	require.Zero(t, code)
	require.Empty(t, last, "nothing to say")
}

func TestCommandLine(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		code int
		out  string
		err  string
	}{
		{"nothing", nil, 2, "", "Usage:"},
		{"help", []string{"help"}, 0, "gocclrun -n 4 -- ./train", ""},
		{"help of run", []string{"run", "-h"}, 0, "-grace time", ""},
		{"unknown flag", []string{"-x", "prog"}, 2, "", "-x; see gocclrun help\n"},
		{"no program", []string{"-n", "2"}, 2, "", "name the program to run"},
		{"bad env", []string{"-env", "X", "prog"}, 2, "", "KEY=VALUE"},
		{"no ranks", []string{"-n", "0", "true"}, 1, "", "gocclrun: launch: invalid argument: 0 ranks"},
		{"absent program", []string{filepath.Join(t.TempDir(), "absent")}, 1, "", "absent"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			require.Equal(t, c.code, dispatch(c.args, stdio{&out, &errs}))
			require.Contains(t, out.String(), c.out)
			require.Contains(t, errs.String(), c.err)
			if c.out == "" {
				require.Empty(t, out.String())
			}
			if c.err == "" {
				require.Empty(t, errs.String())
			}
		})
	}
}

// Every flag and subcommand is explained.
func TestHelpNamesEverything(t *testing.T) {
	var out bytes.Buffer
	usage(&out)
	for _, c := range commands() {
		require.Contains(t, out.String(), c.name)
		require.NotEmpty(t, c.summary)
	}
	for _, f := range []string{"-n", "-grace", "-no-prefix", "-env", "-job", "-v"} {
		require.Contains(t, out.String(), "  "+f)
	}
}
