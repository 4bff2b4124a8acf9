package pgtest

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goccl/goccl"
	processgroup "github.com/goccl/goccl/process_group"
)

// limit ends a case that hangs. It is no measurement.
const limit = 60 * time.Second

// Options sets the size of the suite.
type Options struct {
	// Seed of the covering array and of the values; 0: chosen anew and printed.
	Seed uint64
	// Cases is about how many rows of the array are run, at most 3,000; 0: as
	// many as cover every pair of factors, and with testing.Short half as many
	// rank counts.
	Cases int
	// MatrixOnly leaves the scenarios out, for a row that differs from another in
	// how operations run only.
	MatrixOnly bool
	// Devices are where the ranks have their buffers, by rank; none: in host memory.
	// There are at most as many ranks then, and the groups that Make returns are
	// views on a stream of their rank's device.
	Devices []Device
	// Late says that the backend finds out after the fact when ranks disagree: an
	// operation may end well before they are told.
	Late bool
	// Only leaves rows of the matrix out, for a backend that has a part of the
	// library: form is "allreduce" or the like. Nil: all of them.
	Only func(form string, d goccl.DType, op goccl.ReduceOp) bool
	// Without says why a scenario is left out, by name.
	Without map[string]string
	// Untagged says that the backend does not compare the tags of transfers.
	Untagged bool
}

// Make connects n ranks of this process and returns their groups by rank. It is
// called many times; the suite closes the groups.
type Make = func(t *testing.T, n int) []*processgroup.Group

// Run runs the suite with the default options as subtest name of t.
func Run(t *testing.T, name string, connect Make) { RunWith(t, name, Options{}, connect) }

// RunWith runs the suite as subtest name of t.
func RunWith(t *testing.T, name string, o Options, connect Make) {
	if o.Seed == 0 {
		o.Seed = rand.Uint64()
	}
	t.Run(name, func(t *testing.T) {
		s := &suite{Options: o, connect: connect, memory: newMemory(o.Devices)}
		defer s.memory.free(t)
		t.Run("matrix", s.matrix)
		if o.MatrixOnly {
			return
		}
		for _, c := range scenarios {
			t.Run(c.name, func(t *testing.T) {
				if why := o.Without[c.name]; why != "" {
					t.Skip(why)
				}
				c.run(t, s)
			})
		}
	})
}

type suite struct {
	Options
	connect Make
	memory  *memory
}

// has reports whether the backend reduces d by op.
func (s *suite) has(d goccl.DType, op goccl.ReduceOp) bool {
	return s.Only == nil || s.Only("allreduce", d, op)
}

// most is how many ranks there can be.
func (s *suite) most() int {
	if len(s.Devices) > 0 {
		return len(s.Devices)
	}
	return slices.Max(ranks)
}

// upTo is n ranks, or as many as there can be.
func (s *suite) upTo(n int) int { return min(n, s.most()) }

// sizes are those of ns that can be, or the largest that can.
func (s *suite) sizes(ns ...int) []int {
	for i := range ns {
		ns[i] = s.upTo(ns[i])
	}
	return slices.Compact(ns)
}

// scenario is one case besides the matrix. Names begin with the id of the case
// that they come from, where there is one.
type scenario struct {
	name string
	run  func(t *testing.T, s *suite)
}

var scenarios = []scenario{
	{"C82OneRank", oneRank},
	{"WaitOutOfOrder", waitOutOfOrder},
	{"GroupsInDifferentOrders", groupsInDifferentOrders},
	{"NobodyWaitsOnRank0", nobodyWaits},
	{"Coalesce", coalesce},
	{"C73CoalesceFails", coalesceFails},
	{"C83ManyTransfers", manyTransfers},
	{"C55ZeroBytes", zeroBytes},
	{"C71LargeBothWays", largeBothWays},
	{"TransferToOneself", toOneself},
	{"C78SharedByGoroutines", sharedByGoroutines},
	{"C79DroppedBuffer", droppedBuffer},
	{"StaleHandle", staleHandle},
	{"Done", doneChannel},
	{"ContextBoundsTheWait", contextBoundsTheWait},
	{"C65Int8Wraps", int8Wraps},
	{"C67BF16Bound", bf16Bound},
	{"C69SameBits", sameBits},
	{"BarrierAndAgree", barrierAndAgree},
	{"C81MonitoredBarrier", monitoredBarrier},
	{"Recorder", recorder},
	{"C60C61Mismatch", mismatches},
	{"TagMismatch", tagMismatch},
	{"C76WrongRoot", wrongRoot},
	{"Refusal", refusal},
	{"FailTellsAll", failTellsAll},
	{"C58AbortInFlight", abortInFlight},
	{"UseAfterClose", useAfterClose},
	{"NewBuffer", newBuffer},
}

// groups connects n ranks for one case.
func (s *suite) groups(t *testing.T, n int) []*processgroup.Group {
	t.Helper()
	gs := s.connect(t, n)
	if len(gs) != n {
		t.Fatalf("pgtest: asked for %d groups, got %d", n, len(gs))
	}
	for r, g := range gs {
		if g.Rank() != r || g.Size() != n {
			t.Fatalf("pgtest: group %d says rank %d of %d", r, g.Rank(), g.Size())
		}
	}
	t.Cleanup(func() {
		closeAll(t, gs)
		s.memory.reset()
	})
	return gs
}

// closeAll closes all ranks at once, as the ranks of a job do.
func closeAll(t *testing.T, gs []*processgroup.Group) {
	t.Helper()
	guard(t, "close", func() {
		each(gs, func(_ context.Context, g *processgroup.Group) error { return g.Close() })
	})
}

// guard runs fn and fails the test, with the stacks of all goroutines, when it
// does not return in time.
func guard(t *testing.T, what string, fn func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		fn()
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		buf := make([]byte, 1<<20)
		t.Fatalf("%s: not over after %v\n%s", what, limit, buf[:runtime.Stack(buf, true)])
	}
}

// each runs fn for all ranks at once and returns their errors by rank.
func each(gs []*processgroup.Group, fn func(ctx context.Context, g *processgroup.Group) error) []error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	errs := make([]error, len(gs))
	var wg sync.WaitGroup
	for r, g := range gs {
		wg.Go(func() { errs[r] = fn(ctx, g) })
	}
	wg.Wait()
	return errs
}

// all runs fn for all ranks at once, within the limit, and fails the test on any
// error.
func all(t *testing.T, gs []*processgroup.Group, fn func(ctx context.Context, g *processgroup.Group) error) {
	t.Helper()
	for r, err := range run(t, gs, fn) {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
}

// run is all for a case that is to fail: it returns the errors.
func run(t *testing.T, gs []*processgroup.Group, fn func(ctx context.Context, g *processgroup.Group) error) []error {
	t.Helper()
	var errs []error
	guard(t, t.Name(), func() { errs = each(gs, fn) })
	return errs
}

// sameSentence holds that all ranks failed with the same first line, of the given
// kind, which contains all of words.
func sameSentence(t *testing.T, errs []error, kind error, words ...string) {
	t.Helper()
	for r, err := range errs {
		switch {
		case err == nil:
			t.Fatalf("rank %d did not fail; the others: %v", r, errs)
		case kind != nil && !errors.Is(err, kind):
			t.Errorf("rank %d: %v is no %v", r, err, kind)
		case firstLine(err) != firstLine(errs[0]):
			t.Errorf("ranks tell different stories:\n rank 0: %s\n rank %d: %s", firstLine(errs[0]), r, firstLine(err))
		}
	}
	for _, w := range words {
		if !strings.Contains(firstLine(errs[0]), w) {
			t.Errorf("%q is not in the sentence: %s", w, firstLine(errs[0]))
		}
	}
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
