package processgroup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/goccl/goccl"
)

// failure is the first cause of a group's end.
type failure struct {
	first  atomic.Pointer[cause]
	ctx    context.Context
	cancel context.CancelCauseFunc
}

type cause struct{ err error }

// Failure is the end of a group by the doing of one rank. Its text is one line,
// with the first line of Err, so that all ranks can repeat it.
type Failure struct {
	Rank  int // in the group
	Group string
	Host  string
	PID   int
	Did   string // "failed", "refused its allreduce #5", ...
	Err   error
}

// Error returns, for example,
// "goccl: rank 2 (node1, pid 81) failed: no more data".
func (f *Failure) Error() string {
	why, _, _ := strings.Cut(f.Err.Error(), "\n")
	return fmt.Sprintf("goccl: rank %d (%s, pid %d) %s: %s", f.Rank, f.Host, f.PID, f.Did, why)
}

// Unwrap returns what the rank gave as its reason, and goccl.ErrAborted.
func (f *Failure) Unwrap() []error { return []error{f.Err, goccl.ErrAborted} }

// own is the failure of this rank.
func (c *core) own(did string, err error) error {
	return &Failure{Rank: c.cfg.Rank, Group: c.cfg.Name, Host: c.cfg.Host, PID: c.pid, Did: did, Err: err}
}

// fail makes err the cause of the group's end unless there is one already, and
// returns the cause. It takes no lock of the group, so that a backend may report
// a failure from within any of its methods. tell is false when the peers know.
func (c *core) fail(err error, tell bool) error {
	if first := c.cause(); first != nil {
		return first
	}
	// The peers learn the reason before the connections go: else they would see
	// a lost peer first.
	referee, decides := c.cfg.Control.(Referee)
	if tell && decides {
		err = referee.Decide(err)
	}
	if !c.failure.first.CompareAndSwap(nil, &cause{err}) {
		return c.cause()
	}
	if tell && !decides && c.cfg.Control != nil {
		c.cfg.Control.Fail(err)
	}
	c.failure.cancel(err)
	c.backend.Abort(err)
	c.cfg.Logger.Error("group failed", "group", c.cfg.Name, "rank", c.cfg.Rank, "err", err)
	return err
}

// cause returns why the group failed, nil when it has not.
func (c *core) cause() error {
	if f := c.failure.first.Load(); f != nil {
		return f.err
	}
	return nil
}

// Err returns why the group failed: the root cause, the same on all ranks. It is
// nil for a group that works or was closed in order.
func (c *core) Err() error { return c.cause() }

// Context is cancelled when the group fails or is closed; context.Cause then is
// the root cause, or goccl.ErrClosed.
func (c *core) Context() context.Context { return c.failure.ctx }

// Fail ends the group on all ranks because this one cannot go on. The first line
// of their errors is this rank, its host and the text of err. It does not wait for
// them; a control plane may take a second to say which failure was the first. When
// the group has failed already, the first cause stays. An err that is a Failure of
// another group is passed on as it is: it names who is to blame.
func (c *core) Fail(err error) {
	if err == nil {
		err = errors.New("no reason given")
	}
	if c.cause() != nil {
		return
	}
	var root *Failure
	if errors.As(err, &root) { // from another group of this process
		c.fail(root, true)
		return
	}
	c.fail(c.own("failed", err), true)
}

// Abort ends the group on all ranks: it is Fail with a text that says that this
// was asked for. It may be called from any goroutine and never waits for other
// ranks' operations; a control plane may take a second to say which failure was
// the first.
func (c *core) Abort(err error) {
	if err == nil {
		err = goccl.ErrAborted
	}
	c.fail(c.own("aborted the group", err), true)
}

// opError is how an operation ended in a group that failed: first the cause, as
// every rank reports it, then what this rank was doing.
type opError struct {
	cause error
	doing string
}

func (e *opError) Error() string { return e.cause.Error() + "\n\t" + e.doing }
func (e *opError) Unwrap() error { return e.cause }

func (c *core) opError(op *Op, cause error) error {
	doing := fmt.Sprintf("rank %d called %s on group %q", c.cfg.Rank, op.Name(), c.cfg.Name)
	if op.Seq > 0 {
		doing = fmt.Sprintf("rank %d was in %s #%d on group %q", c.cfg.Rank, op.Name(), op.Seq, c.cfg.Name)
	}
	if op.Label != "" {
		doing += fmt.Sprintf(" (%s)", op.Label)
	}
	return &opError{cause: cause, doing: doing}
}
