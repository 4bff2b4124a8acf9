package disttest

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/internal/leak"
	processgroup "github.com/goccl/goccl/process_group"
)

// patience is how long the ranks may take before the test is ended with the
// stacks of all goroutines.
const patience = 60 * time.Second

// Func is what a rank does.
type Func = func(ctx context.Context, g *processgroup.Group) error

// Run calls fn on n ranks and returns when all of them have returned. t fails
// when fn returns an error or panics on any, when something is left behind, and
// after a minute. fn may use t and call FailNow, as package require does: the
// other ranks are ended then. A test of what faults do looks at the errors within
// fn, or uses Errors.
func Run(t testing.TB, n int, fn Func, faults ...Fault) {
	t.Helper()
	said := map[string]bool{}
	for r, err := range Errors(t, n, fn, faults...) {
		if err != nil && !said[err.Error()] {
			said[err.Error()] = true
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// Errors is Run for tests that expect failures: it returns what dist.Run would
// return on each rank.
func Errors(t testing.TB, n int, fn Func, faults ...Fault) []error {
	t.Helper()
	leak.VerifyNone(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	jobs, err := dist.InitLocal(ctx, n, plan(faults).config())
	if err != nil {
		t.Fatalf("the ranks did not meet: %v", err)
	}
	bark := time.AfterFunc(patience, func() {
		err := errors.New("the ranks did not return within a minute; the test's log has their stacks")
		t.Errorf("%v\n%s", err, stacks())
		cancel(err)
		for _, j := range jobs {
			j.World().Fail(err)
		}
	})
	defer bark.Stop()
	errs := make([]error, n)
	var wg sync.WaitGroup
	for r, j := range jobs {
		wg.Go(func() { errs[r] = j.Run(ctx, fn) })
	}
	wg.Wait()
	return errs
}

func stacks() []byte {
	buf := make([]byte, 1<<20)
	return buf[:runtime.Stack(buf, true)]
}
