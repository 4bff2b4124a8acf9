package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/goccl/goccl/dist/launch"
	"github.com/goccl/goccl/examples/ddp/options"
	"github.com/goccl/goccl/examples/ddp/ui"
)

// envParent tells a rank that this program started it: rank 0 then writes events
// to its standard output, and the ranks have a pipe for notices.
const envParent = "DDP_PARENT"

// grace is how long ranks may take to end when they are told to.
const grace = 3 * time.Second

// parent is the process that the user started.
type parent struct {
	screen  *screen
	job     *launch.Job
	ranks   int
	stopped os.Signal // the signal by which the user ended the run
}

// runParent starts the ranks, shows what they do, and returns the exit code.
func runParent(args []string, o options.Options) int {
	if o.Device == options.CUDA {
		var err error
		if o, err = perGPU(o); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return usageError
		}
		args = append(args, fmt.Sprintf("-ranks=%d", o.Ranks)) // the last one counts
	}
	exe, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, "ddp:", err)
		return 1
	}
	p := &parent{screen: &screen{out: os.Stdout, err: os.Stderr}, ranks: o.Ranks}

	// Before the ranks start, so that no signal is missed.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)

	notices, err := newNotices(o.Ranks)
	if err != nil {
		fmt.Fprintln(os.Stderr, "ddp:", err)
		return 1
	}
	defer notices.close()
	env := []string{envParent + "=1"}
	if _, set := os.LookupEnv("GOMAXPROCS"); !set && !o.Link.IsZero() {
		env = append(env, linkThreads)
	}
	p.job, err = launch.Start(context.Background(), launch.Spec{
		N:          o.Ranks,
		Command:    append([]string{exe}, args...),
		Env:        env,
		Stdout:     replay{p.screen},
		Stderr:     complaints{p.screen},
		Prefix:     true,
		Grace:      grace,
		ExtraFiles: notices.inherited(),
		OnStop: func(cause error) {
			p.screen.Close() // what comes now is to stay on screen
			notices.send(cause)
		},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "ddp:", err)
		return 1
	}
	notices.started()
	err = p.follow(signals)
	p.screen.Close()
	return p.verdict(err)
}

// perGPU makes a rank for each GPU unless o says how many.
func perGPU(o options.Options) (options.Options, error) {
	_, all, err := gpus()
	if err != nil {
		return o, err
	}
	if o.Ranks == 0 {
		o.Ranks = len(all)
	}
	return o, o.Validate()
}

// follow passes on what the user wants until all ranks have ended.
func (p *parent) follow(signals <-chan os.Signal) error {
	var pressed <-chan byte
	if keys, err := ui.OpenKeys(os.Stdin); err == nil {
		defer keys.Close()
		pressed = keys.C()
		p.screen.Note(fmt.Sprintf("%d ranks; press k to kill one, Ctrl-C to stop", p.ranks))
	}
	for {
		select {
		case sig := <-signals:
			p.stopped = sig
			p.job.Stop(os.Interrupt)
		case key, open := <-pressed:
			if !open {
				pressed = nil
			} else if key == 'k' {
				p.kill()
			}
		case <-p.job.Done():
			return p.job.Wait()
		}
	}
}

// kill ends the last rank as the machine does that runs out of memory.
func (p *parent) kill() {
	victim := p.ranks - 1
	if err := p.job.Kill(victim, syscall.SIGKILL); errors.Is(err, os.ErrProcessDone) {
		p.screen.Note(fmt.Sprintf("rank %d has finished already", victim))
	} else if err != nil {
		p.screen.Note("ddp: " + err.Error())
	}
}

// verdict says how the run ended, unless it ended well, and returns the exit code.
func (p *parent) verdict(err error) int {
	var stop *launch.StopError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &stop):
		fmt.Fprintln(os.Stderr, "ddp: stopped; all ranks have ended")
		return launch.ExitCode(&launch.StopError{Signal: p.stopped})
	}
	fmt.Fprintln(os.Stderr, "ddp: the run has failed:", err)
	return launch.ExitCode(err)
}
