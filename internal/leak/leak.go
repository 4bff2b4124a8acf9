// Package leak fails a test run that leaves goroutines, open files or shared
// memory segments behind. Files and segments are seen on Linux only.
//
// Check guards a whole package from its TestMain; VerifyNone guards one test,
// which must not run in parallel with others of the process.
package leak

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// settle is how long things may take to go away after the last test: closing is
// asynchronous in places. It bounds failing runs only.
var settle = 10 * time.Second

// resource is one thing that can be left behind: a key that is equal while it
// is the same thing, and words for a person.
type resource struct{ key, text string }

// Check runs the tests of m and returns the exit code for os.Exit. A run that
// passed fails when it left something behind; what it left goes to standard
// error.
func Check(m *testing.M) int {
	before := snapshot()
	code := m.Run()
	if code != 0 || fuzzing() {
		return code
	}
	if left := wait(before, settle); len(left) > 0 {
		fmt.Fprintf(os.Stderr, "leak: the tests passed but left behind:\n%s", describe(left))
		return 1
	}
	return 0
}

// VerifyNone fails t when, at its end and after its other clean-ups, something
// exists that did not exist when VerifyNone was called.
func VerifyNone(t testing.TB) {
	t.Helper()
	before := snapshot()
	t.Cleanup(func() {
		t.Helper()
		if left := wait(before, settle); len(left) > 0 {
			t.Errorf("leak: left behind:\n%s", describe(left))
		}
	})
}

// fuzzing reports whether this process runs a fuzz engine, which keeps
// goroutines and files of its own.
func fuzzing() bool {
	for _, name := range []string{"test.fuzz", "test.fuzzworker"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != "" && f.Value.String() != "false" {
			return true
		}
	}
	return false
}

// snapshot returns what exists now.
func snapshot() map[string]bool {
	keys := map[string]bool{}
	for _, r := range existing() {
		keys[r.key] = true
	}
	return keys
}

func existing() []resource { return append(goroutines(), files()...) }

// wait looks until nothing is new since before, or until the time is over, and
// returns what is left.
func wait(before map[string]bool, limit time.Duration) []resource {
	for pause, end := time.Millisecond, time.Now().Add(limit); ; pause = min(2*pause, 100*time.Millisecond) {
		var left []resource
		for _, r := range existing() {
			if !before[r.key] {
				left = append(left, r)
			}
		}
		if len(left) == 0 || time.Now().After(end) {
			return left
		}
		time.Sleep(pause)
	}
}

func describe(left []resource) string {
	var b strings.Builder
	for _, r := range left {
		b.WriteString(strings.TrimRight(r.text, "\n") + "\n")
	}
	return b.String()
}
