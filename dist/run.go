package dist

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/goccl/goccl"
	processgroup "github.com/goccl/goccl/process_group"
)

// Run joins the job, calls fn with the group of all ranks, and leaves when fn
// returns. It is an errgroup over ranks: the first error that fn returns on any
// rank, or its panic, fails the group on all of them. Run then returns, on every
// rank that had not finished, an error whose first line is the same sentence with
// the guilty rank, its host and its text, and the context given to fn is cancelled
// with it. fn must return when that happens; Run waits for it. After a panic the
// stack follows on that rank; see PanicError.
//
// Without an Identity, which FromEnv takes from the environment, fn runs on one
// rank, or on Config.Local ranks that are goroutines of this process.
func Run(ctx context.Context, cfg Config, fn func(ctx context.Context, g *Group) error) error {
	if cfg.Identity != nil || cfg.Local <= 1 {
		j, err := Init(ctx, cfg)
		if err != nil {
			return err
		}
		return j.Run(ctx, fn)
	}
	jobs, err := InitLocal(ctx, cfg.Local, cfg)
	if err != nil {
		return err
	}
	errs := make([]error, len(jobs))
	var wg sync.WaitGroup
	for r, j := range jobs {
		wg.Go(func() { errs[r] = j.Run(ctx, fn) })
	}
	wg.Wait()
	return guilty(errs)
}

// guilty picks the error of the rank that knows most of the cause: its own one.
func guilty(errs []error) error {
	var first error
	for r, err := range errs {
		var f *processgroup.Failure
		if errors.As(err, &f) && f.Rank == r {
			return err
		}
		if first == nil {
			first = err
		}
	}
	return first
}

type jobKey struct{}

// JobOf returns the job of the context that Run gave to its function, to make
// groups with. The job is Run's to close.
func JobOf(ctx context.Context) (*Job, bool) {
	j, ok := ctx.Value(jobKey{}).(*Job)
	return j, ok
}

// Run is what the function Run does once the job is joined: it calls fn on this
// rank, tells the others of its failure and leaves the job, which it closes.
func (j *Job) Run(parent context.Context, fn func(ctx context.Context, g *Group) error) error {
	g := j.world
	ctx, cancel := context.WithCancelCause(context.WithValue(parent, jobKey{}, j))
	stop := context.AfterFunc(g.Context(), func() { cancel(context.Cause(g.Context())) })
	ended := make(chan error)
	go func() {
		err := fmt.Errorf("%w: the function ended its goroutine, as a test's FailNow does", goccl.ErrAborted)
		defer func() { ended <- err }()
		err = guard(func() error { return fn(ctx, g) })
	}()
	own := <-ended
	if own != nil {
		g.Fail(own)
	}
	cause := g.Err()
	closed := j.Close()
	stop()
	cancel(nil)
	switch {
	case own != nil && cause != nil:
		return withCause(cause, own)
	case own != nil:
		return own
	}
	return closed
}

// PanicError is a panic of the function given to Run. Its text is one line.
type PanicError struct {
	Value any
	Stack []byte // of the goroutine, as package runtime/debug prints it
}

// Error returns, for example, "panic: index out of range".
func (p *PanicError) Error() string {
	first, _, _ := strings.Cut(fmt.Sprint(p.Value), "\n")
	return "panic: " + first
}

// Unwrap returns the value of the panic when it is an error.
func (p *PanicError) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// guard turns a panic of fn into an error.
func guard(fn func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return fn()
}

// runError is what Run returns on a rank of a job that failed: the sentence that
// all ranks have, and then what happened on this one.
type runError struct{ cause, own error }

func withCause(cause, own error) error {
	var p *PanicError
	if errors.As(cause, &p) && errors.Is(own, p) {
		return &runError{cause, own}
	}
	if errors.Is(cause, own) {
		return cause // this rank's own failure: the sentence has all of it
	}
	return &runError{cause, own}
}

// Error returns the sentence, and below it this rank's part.
func (e *runError) Error() string {
	var b strings.Builder
	b.WriteString(e.cause.Error())
	var p *PanicError
	if errors.As(e.own, &p) {
		fmt.Fprintf(&b, "\n%s", p.Stack)
		return b.String()
	}
	// An operation's error begins with the sentence itself.
	rest := strings.TrimPrefix(e.own.Error(), e.cause.Error())
	if rest = strings.TrimSpace(rest); rest != "" {
		fmt.Fprintf(&b, "\n\t%s", rest)
	}
	return b.String()
}

// Unwrap returns both.
func (e *runError) Unwrap() []error { return []error{e.cause, e.own} }
