package bootstrap

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// watchdog is no expectation: it only turns a hang into a failure.
const watchdog = 60 * time.Second

// testQueue is what may wait for one rank: small, so that a test can fill it.
const testQueue = 16 << 20

// transports are the ways in which ranks reach the hub; every session test runs
// over each.
var transports = []string{"inproc", "tcp"}

func overTransports(t *testing.T, f func(t *testing.T, transport string)) {
	for _, tr := range transports {
		t.Run(tr, func(t *testing.T) { f(t, tr) })
	}
}

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	t.Cleanup(cancel)
	return ctx
}

func openRoot(t *testing.T, transport string, opt RootOptions) *Root {
	t.Helper()
	var r *Root
	var err error
	if transport == "inproc" {
		r, err = ListenLocal(opt)
	} else {
		r, err = ListenRoot(t.Context(), "127.0.0.1:0", opt)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

// serveRoot runs Serve and returns a function that waits for its result.
func serveRoot(ctx context.Context, t *testing.T, r *Root) func() error {
	var err error
	done := make(chan struct{})
	go func() { defer close(done); err = r.Serve(ctx) }()
	t.Cleanup(func() { _ = r.Close(); <-done })
	return func() error { <-done; return err }
}

// world is a running root with all ranks joined.
type world struct {
	root     *Root
	sessions []*Session
	serve    func() error
	logs     []*eventLog
}

// eventLog collects what OnEvent is told.
type eventLog struct {
	ch chan Event
}

// add keeps the first events; a test that is not about them gets more.
func (l *eventLog) add(e Event) {
	select {
	case l.ch <- e:
	default:
	}
}

func (l *eventLog) next(t *testing.T) Event {
	t.Helper()
	select {
	case e := <-l.ch:
		return e
	case <-time.After(watchdog):
		t.Fatal("no event")
		return Event{}
	}
}

func newWorld(t *testing.T, transport string, n int, edit func(*Config)) *world {
	t.Helper()
	ctx := testContext(t)
	w := &world{root: openRoot(t, transport, RootOptions{Size: n, Job: t.Name()}), sessions: make([]*Session, n)}
	w.root.queue = testQueue
	w.serve = serveRoot(ctx, t, w.root)
	for range n {
		w.logs = append(w.logs, &eventLog{ch: make(chan Event, min(4*n, 64))})
	}
	errs := each(n, func(rank int) (err error) {
		cfg := Config{Rank: rank, Size: n, Job: t.Name(), Timeout: watchdog, Info: fmt.Appendf(nil, "info %d", rank),
			OnEvent: w.logs[rank].add}
		if edit != nil {
			edit(&cfg)
		}
		w.sessions[rank], err = Join(ctx, w.root.ID(), cfg)
		return err
	})
	for _, err := range errs {
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		each(n, func(rank int) error { return w.sessions[rank].Close() })
	})
	return w
}

// each calls f for all ranks at once and returns their errors.
func each(n int, f func(rank int) error) []error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for rank := range n {
		wg.Go(func() { errs[rank] = f(rank) })
	}
	wg.Wait()
	return errs
}

// settled waits until the number that count gives is no more than want. Descriptors
// and goroutines end a moment after the call that ends them on the other side.
func settled(t *testing.T, what string, want int, count func() int) {
	t.Helper()
	require.Eventually(t, func() bool { return count() <= want }, watchdog, 5*time.Millisecond, "%s: at most %d are due", what, want)
}

func openFiles(t *testing.T) func() int {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("needs /proc/self/fd")
	}
	return func() int {
		names, _ := filepath.Glob("/proc/self/fd/*")
		return len(names)
	}
}

// goroutines counts those that run this package's code.
func goroutines() int {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	n := 0
	for g := range strings.SplitSeq(string(buf), "\n\n") {
		if strings.Contains(g, "bootstrap.(*server)") || strings.Contains(g, "bootstrap.(*Session)") || strings.Contains(g, "bootstrap.(*outbox)") {
			n++
		}
	}
	return n
}
