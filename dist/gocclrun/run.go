package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"strings"

	"github.com/goccl/goccl/dist/launch"
)

const runHelp = `
Each rank gets RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR,
MASTER_PORT, GOCCL_JOB_ID and, unless it is set, GOMAXPROCS = cores / ranks.
Rank 0 also inherits the open listener at MASTER_ADDR:MASTER_PORT.

SIGINT, SIGTERM and SIGHUP stop the job: they are passed to all ranks and to all
that these started, and what is left after the grace period is killed. SIGUSR1
and SIGUSR2 are passed on. The exit code is that of the first rank that failed,
128 + the signal that ended it or stopped the job, or 2 for a wrong command line.

Examples:
  gocclrun -n 4 -- ./train -epochs 3
  gocclrun -n 2 -env GOMAXPROCS=1 -- ./train
  gocclrun -n 8 -grace 30s -no-prefix -- ./train > train.log

Flags of run:
`

// runOptions are the flags of run.
type runOptions struct {
	spec     launch.Spec
	noPrefix bool
	verbose  bool
}

func runFlags() (*flag.FlagSet, *runOptions) {
	o := &runOptions{}
	f := flag.NewFlagSet("gocclrun", flag.ContinueOnError)
	f.IntVar(&o.spec.N, "n", runtime.GOMAXPROCS(0), "number of `ranks`")
	f.DurationVar(&o.spec.Grace, "grace", launch.DefaultGrace, "`time` from SIGTERM to SIGKILL when the job is stopped; keep it below the scheduler's")
	f.BoolVar(&o.noPrefix, "no-prefix", false, "do not put \"[rank] \" before each line of output")
	f.BoolVar(&o.verbose, "v", false, "say when ranks start and end")
	f.StringVar(&o.spec.Job, "job", "", "`id` of the job (default: a random one)")
	f.Func("env", "`KEY=VALUE` for the environment of all ranks; may be given several times", func(s string) error {
		if i := strings.IndexByte(s, '='); i < 1 {
			return errors.New("write KEY=VALUE")
		}
		o.spec.Env = append(o.spec.Env, s)
		return nil
	})
	return f, o
}

// runCommand runs a job and says how it ended.
func runCommand(args []string, std stdio) int {
	flags, o := runFlags()
	flags.SetOutput(io.Discard) // errors are shown here, once
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		usage(std.out)
		return 0
	case err != nil:
		fmt.Fprintf(std.err, "gocclrun: %v; see gocclrun help\n", err)
		return usageError
	case flags.NArg() == 0:
		fmt.Fprintln(std.err, "gocclrun: name the program to run, as in: gocclrun -n 4 -- ./train; see gocclrun help")
		return usageError
	}
	o.spec.Command = flags.Args()
	o.spec.Prefix = !o.noPrefix
	o.spec.Stdout, o.spec.Stderr = std.out, std.err
	if o.spec.Grace == 0 {
		o.spec.Grace = -1 // on the command line 0 means what it says
	}
	level := slog.LevelWarn
	if o.verbose {
		level = slog.LevelDebug
	}
	o.spec.Logger = slog.New(slog.NewTextHandler(std.err, &slog.HandlerOptions{Level: level}))

	// Before the ranks start, so that no signal is missed.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, append(stopping(), passing()...)...)
	defer signal.Stop(signals)
	job, err := launch.Start(context.Background(), o.spec)
	if err != nil {
		fmt.Fprintln(std.err, "gocclrun:", trim(err))
		return launch.ExitCode(err)
	}
	forward(job, signals)
	if err = job.Wait(); err != nil {
		fmt.Fprintln(std.err, "gocclrun:", trim(err))
	}
	return launch.ExitCode(err)
}

// trim takes off the library's name, which gocclrun's own replaces.
func trim(err error) string { return strings.TrimPrefix(err.Error(), "goccl: ") }

// forward passes signals on until the job is over.
func forward(job *launch.Job, signals <-chan os.Signal) {
	for {
		select {
		case sig := <-signals:
			if isStopping(sig) {
				job.Stop(sig)
			} else {
				_ = job.Signal(sig) // a rank that has ended needs none
			}
		case <-job.Done():
			return
		}
	}
}

func isStopping(sig os.Signal) bool {
	for _, s := range stopping() {
		if s == sig {
			return true
		}
	}
	return false
}
