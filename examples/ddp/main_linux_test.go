package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goccl/goccl/dist/launch"
)

// The test binary is also the program: envProgram makes it run as that, and so its
// ranks.
const envProgram = "DDP_TEST_PROGRAM"

const watchdog = 60 * time.Second

func TestMain(m *testing.M) {
	if os.Getenv(envProgram) != "" {
		os.Exit(run(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// program is the program with small data: steps of milliseconds, many of them.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe, append([]string{"-ranks=3", "-images=240", "-batch=48"}, args...)...)
	cmd.Env = append(os.Environ(), envProgram+"=1", "GORACE=atexit_sleep_ms=0")
	return cmd
}

// finish ends a program that hangs.
func finish(t *testing.T, cmd *exec.Cmd) {
	timer := time.AfterFunc(watchdog, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() { timer.Stop() })
}

func whole(t *testing.T, args ...string) (result map[string]any, text string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "result.json")
	cmd := program(t, append(args, "-epochs=1", "-json="+path)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	require.NoError(t, cmd.Start())
	finish(t, cmd)
	require.NoError(t, cmd.Wait(), "%s%s", &out, &errs)
	require.Empty(t, errs.String())
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &result))
	return result, out.String()
}

func TestWholeRun(t *testing.T) {
	dump := filepath.Join(t.TempDir(), "parameters.safetensors")
	got, text := whole(t, "-dump="+dump)
	require.EqualValues(t, 3, got["ranks"])
	require.EqualValues(t, 1, got["epochs"])
	require.EqualValues(t, 5, got["steps"])
	require.Equal(t, true, got["params_equal"])
	require.InDelta(t, 0, got["single_rank_diff"], 1e-6)
	require.InDelta(t, 0, got["single_rank_early"], 1e-6)
	require.Greater(t, got["accuracy"], 0.05)
	require.Less(t, got["loss"], 2.5)
	require.Greater(t, got["samples_per_s"], 0.0)
	require.NotNil(t, got["exposed_ms"])
	require.Equal(t, true, got["overlap"].(map[string]any)["equal"])
	buckets := got["buckets"].([]any)
	require.GreaterOrEqual(t, len(buckets), 4)
	bytes := 0.0
	for _, b := range buckets {
		b := b.(map[string]any)
		bytes += b["bytes"].(float64)
		require.NotEmpty(t, b["parameters"])
		require.LessOrEqual(t, b["ready_ms"], b["launched_ms"])
		require.LessOrEqual(t, b["launched_ms"], b["done_ms"])
	}
	require.GreaterOrEqual(t, bytes, 1.5e6)
	info, err := os.Stat(dump)
	require.NoError(t, err)
	require.Greater(t, float64(info.Size()), bytes, "the dump holds as many parameters as there are gradients")
	require.Contains(t, text, "training: 5 steps, 1 epochs; of each rank")
	require.Contains(t, text, "step 5/5  epoch 1/1")
	require.Regexp(t, `parameters +[0-9a-f]{16} on every rank`, text)

	held, _ := whole(t, "-no-overlap")
	require.Equal(t, got["params_hash"], held["params_hash"], "overlap changes no bit")
}

func TestShapedLink(t *testing.T) {
	got, text := whole(t, "-link=2Gbps,50us", "-ranks=2")
	require.Equal(t, true, got["params_equal"])
	require.Equal(t, true, got["overlap"].(map[string]any)["equal"])
	require.Greater(t, got["overlap"].(map[string]any)["ratio"], 0.0)
	require.Contains(t, text, "shaped to 2Gbps,50us")
}

// Under another launcher rank 0 shows the run.
func TestForeignLauncher(t *testing.T) {
	cmd := program(t, "-ranks=2", "-epochs=1")
	var out, errs bytes.Buffer
	job, err := launch.Start(t.Context(), launch.Spec{
		N: 2, Command: cmd.Args, Env: cmd.Env, Stdout: &out, Stderr: &errs, Prefix: true,
	})
	require.NoError(t, err)
	require.NoError(t, job.Wait(), "%s%s", &out, &errs)
	require.Contains(t, out.String(), "[0] step 5/5")
	require.Contains(t, out.String(), "on every rank")
	require.NotContains(t, out.String(), "[1]")
}

func TestWrongFlags(t *testing.T) {
	cmd := program(t, "-ranks=7")
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Equal(t, usageError, cmd.ProcessState.ExitCode())
	require.Contains(t, string(out), "must be a multiple of -ranks 7")
}

// running is a program that trains until it is ended.
type running struct {
	cmd   *exec.Cmd
	out   *bufio.Reader
	errs  bytes.Buffer
	ranks map[int]int // process ids by rank
}

func start(t *testing.T) *running {
	t.Helper()
	r := &running{cmd: program(t, "-epochs=5000", "-lr=0.001"), ranks: map[int]int{}}
	out, err := r.cmd.StdoutPipe()
	require.NoError(t, err)
	r.out, r.cmd.Stderr = bufio.NewReader(out), &r.errs
	require.NoError(t, r.cmd.Start())
	finish(t, r.cmd)
	r.find(t)
	for line := ""; !strings.HasPrefix(line, "step "); {
		line, err = r.out.ReadString('\n')
		require.NoError(t, err, "%s", &r.errs)
	}
	return r
}

var isRank = regexp.MustCompile(`(?:^|\x00)RANK=(\d+)(?:\x00|$)`)

// find looks for the ranks among the children of the program. It returns when there
// are three: a child is a copy of the program until it has its own environment.
func (r *running) find(t *testing.T) {
	require.Eventually(t, func() bool {
		lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", r.cmd.Process.Pid))
		require.NoError(t, err)
		for _, list := range lists {
			pids, _ := os.ReadFile(list) // a thread may have ended
			for _, pid := range strings.Fields(string(pids)) {
				env, _ := os.ReadFile("/proc/" + pid + "/environ")
				if m := isRank.FindSubmatch(env); m != nil {
					rank, _ := strconv.Atoi(string(m[1]))
					r.ranks[rank], _ = strconv.Atoi(pid)
				}
			}
		}
		return len(r.ranks) == 3
	}, watchdog, 10*time.Millisecond)
}

// ends waits for the end of the program, and sees that none of its ranks is left.
func (r *running) ends(t *testing.T) {
	t.Helper()
	_, err := io.Copy(io.Discard, r.out)
	require.NoError(t, err)
	require.Error(t, r.cmd.Wait())
	for rank, pid := range r.ranks {
		require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, "rank %d is left", rank)
	}
}

func (r *running) name(t *testing.T, rank int) string {
	host, err := os.Hostname()
	require.NoError(t, err)
	return fmt.Sprintf("goccl: rank %d (host %s, pid %d)", rank, host, r.ranks[rank])
}

func TestKilledRankIsNamedByAll(t *testing.T) {
	for _, victim := range []int{1, 0} {
		r := start(t)
		require.NoError(t, syscall.Kill(r.ranks[victim], syscall.SIGKILL))
		r.ends(t)
		require.Equal(t, 128+int(syscall.SIGKILL), r.cmd.ProcessState.ExitCode())
		sentence := r.name(t, victim) + " was killed by signal 9 (killed)\n"
		for rank := range r.ranks {
			if rank != victim {
				require.Contains(t, r.errs.String(), fmt.Sprintf("[%d] %s", rank, sentence))
			}
		}
		require.Equal(t, 3, strings.Count(r.errs.String(), "\n"), r.errs.String())
	}
}

func TestInterruptEndsAllWithOneLine(t *testing.T) {
	r := start(t)
	require.NoError(t, r.cmd.Process.Signal(os.Interrupt))
	r.ends(t)
	require.Equal(t, 128+int(syscall.SIGINT), r.cmd.ProcessState.ExitCode())
	require.Equal(t, "ddp: stopped; all ranks have ended\n", r.errs.String())
}

// In a terminal the key k kills the last rank.
func TestKeyKillsARank(t *testing.T) {
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	defer keyboard.Close()
	require.NoError(t, unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0))
	require.NoError(t, unix.IoctlSetWinsize(int(keyboard.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 100}))
	n, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	tty, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	cmd := program(t, "-epochs=5000", "-lr=0.001")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, cmd.Start())
	finish(t, cmd)
	require.NoError(t, tty.Close())

	var screen strings.Builder
	buf := make([]byte, 4096)
	for pressed := false; ; {
		n, err := keyboard.Read(buf)
		screen.Write(buf[:n])
		if err != nil {
			break // the program has ended, and nobody holds the terminal
		}
		if !pressed && strings.Contains(screen.String(), "samples/s") && strings.Contains(screen.String(), "rank 2  compute") {
			_, err := keyboard.WriteString("k")
			require.NoError(t, err)
			pressed = true
		}
	}
	require.Error(t, cmd.Wait())
	require.Equal(t, 128+int(syscall.SIGKILL), cmd.ProcessState.ExitCode(), screen.String())
	require.Contains(t, screen.String(), "press k to kill one")
	for rank := range 2 {
		require.Regexp(t, fmt.Sprintf(`\[%d\] goccl: rank 2 \(host .*, pid \d+\) was killed by signal 9 \(killed\)`, rank), screen.String())
	}
}
