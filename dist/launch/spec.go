// Package launch runs the ranks of a job on this machine: N processes of one
// command, with the environment by which package dist finds the others, their
// output line by line under rank numbers, and one fate: the first rank that
// fails ends all, and nothing stays behind. Command gocclrun is its command
// line.
package launch

import (
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/goccl/goccl"
)

// Variables that a rank finds in its environment beside RANK, WORLD_SIZE,
// LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT and GOMAXPROCS.
const (
	// EnvJobID holds Spec.Job, the same text on all ranks and another one in
	// every job.
	EnvJobID = "GOCCL_JOB_ID"

	// EnvListenFD holds, on rank 0 alone, the number of the open file that is the
	// listener at MASTER_ADDR:MASTER_PORT. InheritedListener takes it.
	EnvListenFD = "GOCCL_LISTEN_FD"
)

// DefaultGrace is shorter than what the usual schedulers give a job between
// SIGTERM and SIGKILL, so that the launcher can still end its ranks by itself.
const DefaultGrace = 5 * time.Second

// Spec says what to start.
type Spec struct {
	// N is the number of ranks, at least 1.
	N int

	// Command is the program, looked up in PATH, and its arguments; the same for
	// all ranks. Their standard input is empty.
	Command []string

	// Env has KEY=VALUE entries beside the environment of this process, over
	// which they win. The variables that say who a rank is cannot be set.
	// GOMAXPROCS, unless it is set in one of the two, is that of this process (its
	// cores) divided by N, at least 1.
	Env []string

	// Stdout and Stderr take the ranks' output in whole lines; nil drops it. They
	// are never written to concurrently, and a slow one slows the ranks.
	Stdout, Stderr io.Writer

	// Prefix puts "[rank] " before each line.
	Prefix bool

	// Grace is the time between SIGTERM and SIGKILL when the job is stopped;
	// DefaultGrace if 0, none if negative.
	Grace time.Duration

	// Job is the job's id; a random one if empty.
	Job string

	// ExtraFiles are open files that all ranks inherit, as descriptors 4 and up.
	// Descriptor 3 is the listener on rank 0 and closed on others. Not on Windows.
	ExtraFiles []*os.File

	// OnStop, if not nil, is called once when the job begins to end before its
	// time, with what Wait will return, and before any rank is told to stop: what
	// it passes on to the ranks they have when their signal comes. It must not
	// block, nor call the job.
	OnStop func(cause error)

	// Logger is told of starts and ends; nil: no one.
	Logger *slog.Logger
}

// check fills in defaults and refuses what cannot be started.
func (s *Spec) check() error {
	if s.N < 1 {
		return fmt.Errorf("goccl: launch: %w: %d ranks; at least 1 is needed", goccl.ErrInvalid, s.N)
	}
	if len(s.Command) == 0 {
		return fmt.Errorf("goccl: launch: %w: no command to run", goccl.ErrInvalid)
	}
	if _, err := exec.LookPath(s.Command[0]); err != nil {
		return fmt.Errorf("goccl: launch: %w", err)
	}
	if s.Stdout == nil {
		s.Stdout = io.Discard
	}
	if s.Stderr == nil {
		s.Stderr = io.Discard
	}
	if s.Grace == 0 {
		s.Grace = DefaultGrace
	}
	if s.Job == "" {
		s.Job = rand.Text()
	}
	if s.OnStop == nil {
		s.OnStop = func(error) {}
	}
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// command returns the command of one rank, without files.
func (s *Spec) command(rank int, host, port string) *exec.Cmd {
	cmd := exec.Command(s.Command[0], s.Command[1:]...)
	env := append(cmd.Environ(), s.Env...)
	if !isSet(env, "GOMAXPROCS") {
		env = append(env, "GOMAXPROCS="+strconv.Itoa(max(1, runtime.GOMAXPROCS(0)/s.N)))
	}
	// Where a variable occurs twice the last one counts.
	cmd.Env = append(without(env, EnvListenFD),
		"RANK="+strconv.Itoa(rank),
		"WORLD_SIZE="+strconv.Itoa(s.N),
		"LOCAL_RANK="+strconv.Itoa(rank),
		"LOCAL_WORLD_SIZE="+strconv.Itoa(s.N),
		"MASTER_ADDR="+host,
		"MASTER_PORT="+port,
		EnvJobID+"="+s.Job,
	)
	return cmd
}

func isSet(env []string, key string) bool {
	for _, e := range env {
		if strings.HasPrefix(e, key+"=") && len(e) > len(key)+1 {
			return true
		}
	}
	return false
}

func without(env []string, key string) []string {
	kept := env[:0:0]
	for _, e := range env {
		if !strings.HasPrefix(e, key+"=") {
			kept = append(kept, e)
		}
	}
	return kept
}
