package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/goccl/goccl"
)

// Job is a set of running ranks. Its methods may be called from any goroutine.
type Job struct {
	spec  Spec
	procs []*process
	exits chan exit
	stops chan os.Signal
	done  chan struct{} // closed when all is over and err is set
	err   error
}

// settle is how long the supervisor looks for the root cause after a rank
// exited with an error: a rank that was killed may be reported after a
// neighbour that failed because of it.
const settle = 50 * time.Millisecond

// Start starts the ranks and returns once all of them run. When ctx ends the job
// is stopped as Stop does with SIGTERM. The caller must call Wait.
func Start(ctx context.Context, spec Spec) (*Job, error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("goccl: launch: %w: %w", goccl.ErrAborted, context.Cause(ctx))
	}
	j := &Job{
		spec:  spec,
		exits: make(chan exit, spec.N),
		stops: make(chan os.Signal, 1),
		done:  make(chan struct{}),
	}
	started := make(chan error)
	go j.run(ctx, started)
	if err := <-started; err != nil {
		return nil, err
	}
	return j, nil
}

// run starts the ranks, supervises them and ends after them. On Linux a rank is
// killed when the thread that made it ends, so this goroutine stays on one.
func (j *Job) run(ctx context.Context, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(j.done)
	var waits sync.WaitGroup
	err := j.startAll(&waits)
	if err != nil {
		j.stop(syscall.SIGKILL)
		waits.Wait()
		started <- err
		return
	}
	close(started)
	j.err = j.supervise(ctx)
	waits.Wait()
}

func (j *Job) startAll(waits *sync.WaitGroup) error {
	r, err := openRendezvous()
	if err != nil {
		return err
	}
	defer r.Close() // the ranks have their own copies
	var output sync.Mutex
	for rank := range j.spec.N {
		p := &process{rank: rank}
		p.cmd = j.spec.command(rank, r.host, r.port)
		p.out = newLines(j.spec.Stdout, &output, rank, j.spec.Prefix, &p.tail)
		p.err = newLines(j.spec.Stderr, &output, rank, j.spec.Prefix, &p.tail)
		r.hand(p.cmd, rank, j.spec.ExtraFiles)
		if err := p.launch(); err != nil {
			return err
		}
		j.procs = append(j.procs, p)
		waits.Go(func() { j.exits <- p.wait() })
		j.spec.Logger.Debug("rank started", "rank", rank, "pid", p.cmd.Process.Pid)
	}
	return nil
}

// supervise returns why the job ended, when all ranks have.
func (j *Job) supervise(ctx context.Context) error {
	var cause error
	var kill <-chan time.Time
	quit := ctx.Done()
	begin := func(err error, sig os.Signal) {
		if kill != nil { // told again
			j.stop(sig)
			return
		}
		cause = err
		j.spec.Logger.Info("stopping all ranks", "cause", err, "grace", j.spec.Grace)
		j.spec.OnStop(err)
		j.stop(sig)
		kill = time.After(max(0, j.spec.Grace))
	}
	for left := j.spec.N; left > 0; {
		select {
		case e := <-j.exits:
			left--
			f := e.failure()
			j.spec.Logger.Debug("rank ended", "rank", e.p.rank, "state", e.state.String())
			if f != nil && cause == nil {
				n := 0
				f, n = j.root(f, left)
				left -= n
				begin(f, syscall.SIGTERM)
			}
		case sig := <-j.stops:
			begin(&StopError{Signal: sig}, sig)
		case <-quit:
			quit = nil
			begin(fmt.Errorf("goccl: launch: %w: %w", goccl.ErrAborted, context.Cause(ctx)), syscall.SIGTERM)
		case <-kill:
			j.spec.Logger.Warn("the grace period is over: killing the ranks that are left", "ranks", left)
			j.stop(syscall.SIGKILL)
		}
	}
	return cause
}

// root picks the failure to report. f came first; if it exited by itself, a rank
// that dies of a signal right after it is more likely the reason than the
// consequence, as no signal has been sent yet. It returns how many of the left
// ranks it saw end.
func (j *Job) root(f *ExitError, left int) (*ExitError, int) {
	if f.Signal != nil {
		return f, 0
	}
	over := time.After(settle)
	for n := 0; ; {
		if n == left {
			return f, n
		}
		select {
		case e := <-j.exits:
			n++
			if g := e.failure(); g != nil && g.Signal != nil {
				return g, n
			}
		case <-over:
			return f, n
		}
	}
}

// stop sends sig to all ranks. One that is stopped (state T) would not see it
// until it is continued.
func (j *Job) stop(sig os.Signal) {
	for _, p := range j.procs {
		_ = p.signal(sig) // it may have ended
		if sig != syscall.SIGKILL {
			resume(p)
		}
	}
}

// Wait returns when all ranks have ended and their output is written: nil if all
// exited with 0 by themselves, otherwise what ended the job: an *ExitError of
// the first rank that failed, a *StopError after Stop, or the cause of the
// context given to Start. It may be called more than once.
func (j *Job) Wait() error {
	<-j.done
	return j.err
}

// Done returns a channel that is closed when Wait would not block.
func (j *Job) Done() <-chan struct{} { return j.done }

// ID returns the job's id.
func (j *Job) ID() string { return j.spec.Job }

// PIDs returns the process ids of the ranks, in rank order, also of those that
// have ended.
func (j *Job) PIDs() []int {
	pids := make([]int, len(j.procs))
	for i, p := range j.procs {
		pids[i] = p.cmd.Process.Pid
	}
	return pids
}

// Kill sends sig to one rank and the processes it started. A rank that has ended
// is os.ErrProcessDone.
func (j *Job) Kill(rank int, sig os.Signal) error {
	if rank < 0 || rank >= len(j.procs) {
		return fmt.Errorf("goccl: launch: %w: no rank %d among %d", goccl.ErrInvalid, rank, len(j.procs))
	}
	if err := j.procs[rank].signal(sig); err != nil {
		return fmt.Errorf("goccl: launch: signal %s to rank %d: %w", describe(sig), rank, err)
	}
	return nil
}

// Signal sends sig to all ranks that run and the processes they started.
func (j *Job) Signal(sig os.Signal) error {
	var errs []error
	for rank := range j.procs {
		if err := j.Kill(rank, sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Stop ends the job: it sends sig to all ranks, and after the grace period
// SIGKILL. It does not wait. A second Stop sends its signal too, without a new
// grace period. Wait then returns a *StopError, whatever the ranks exit with.
func (j *Job) Stop(sig os.Signal) {
	select {
	case j.stops <- sig:
	case <-j.done:
	}
}
