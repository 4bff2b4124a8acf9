package bucket

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/internal/golden"
)

// TestMachine runs testdata/machine.txt. A script makes a machine with
//
//	new a b | c d    buckets of parameters, "-x" for a frozen one; then flags
//
// and feeds it events: ready NAME..., finish, reduced N [error], begin, nosync
// on|off, relayout BUCKETS.
func TestMachine(t *testing.T) {
	var m *machine
	golden.Script(t, "testdata/machine.txt", func(t *testing.T, c golden.Case) string {
		switch c.Cmd {
		case "new":
			m = parseMachine(c.Args)
			return ""
		case "many":
			n, err := strconv.Atoi(c.Args[0])
			require.NoError(t, err)
			names, all := make([]string, n), make([]int, n)
			for i := range n {
				names[i], all[i] = fmt.Sprintf("w%d", i), i
			}
			m = newMachine(names, [][]int{all}, mode{})
			return ""
		case "ready":
			var out strings.Builder
			for _, name := range c.Args {
				out.WriteString(m.text(m.gradReady(slices.Index(m.names, name))))
			}
			return out.String()
		case "finish":
			return m.text(m.finish())
		case "reduced":
			b, err := strconv.Atoi(c.Args[0])
			require.NoError(t, err)
			var cause error
			if len(c.Args) > 1 {
				cause = errors.New(strings.Join(c.Args[1:], " "))
			}
			return m.text(m.reduced(b, cause))
		case "begin":
			m.begin()
			return ""
		case "nosync":
			if err := m.setNoSync(c.Args[0] == "on"); err != nil {
				return err.Error()
			}
			return ""
		case "order":
			return fmt.Sprintln(nameList(m.names, m.readyOrder()))
		case "relayout":
			m.relayout(parseBuckets(m.names, c.Args))
			return ""
		}
		t.Fatalf("%s:%d: command %q", c.Path, c.Line, c.Cmd)
		return ""
	})
}

func parseMachine(words []string) *machine {
	var md mode
	var names []string
	at := slices.Index(words, "with")
	if at < 0 {
		at = len(words)
	}
	for _, w := range words[min(at+1, len(words)):] {
		switch w {
		case "unused":
			md.findUnused = true
		case "hold":
			md.hold = true
		case "record":
			md.record = true
		}
	}
	for _, w := range words[:at] {
		if w != "|" {
			names = append(names, strings.TrimPrefix(w, "-"))
		}
	}
	return newMachine(names, parseBuckets(names, words[:at]), md)
}

func parseBuckets(names, words []string) [][]int {
	var out [][]int
	var open []int
	for _, w := range append(slices.Clone(words), "|") {
		switch {
		case w != "|" && !strings.HasPrefix(w, "-"):
			open = append(open, slices.Index(names, w))
		case w == "|" && len(open) > 0:
			out, open = append(out, open), nil
		}
	}
	return out
}

func (m *machine) text(acts []action) string {
	var b strings.Builder
	for _, a := range acts {
		switch a.kind {
		case actLaunch:
			fmt.Fprintf(&b, "launch %d\n", a.index)
		case actZero:
			fmt.Fprintf(&b, "zero %s\n", m.names[a.index])
		case actFill:
			fmt.Fprintf(&b, "fill %s\n", m.names[a.index])
		case actCopyBack:
			fmt.Fprintf(&b, "copy back %d\n", a.index)
		case actDone:
			fmt.Fprintln(&b, "done")
		case actRebuild:
			fmt.Fprintln(&b, "rebuild")
		case actFail:
			fmt.Fprintf(&b, "fail: %v\n", m.err)
		}
	}
	return b.String()
}

// slow is the machine as one would explain it: no counters, everything found
// anew from the list of events.
type slow struct {
	buckets  [][]int
	ready    map[int]bool
	hold     bool
	unused   bool
	launched int
}

func (s *slow) launches(finished bool) (out []int) {
	for b, members := range s.buckets {
		full := true
		for _, i := range members {
			full = full && s.ready[i]
		}
		if !full || (s.hold && !finished) {
			break
		}
		if b >= s.launched {
			out = append(out, b)
			s.launched = b + 1
		}
	}
	return out
}

func launches(acts []action) (out []int) {
	for _, a := range acts {
		if a.kind == actLaunch {
			out = append(out, a.index)
		}
	}
	return out
}

// TestMachineAgainstSlow runs random steps through the machine and its slow twin.
func TestMachineAgainstSlow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items := drawItems(t)
		buckets := assign(reversed(len(items)), items, []int64{64, 128})
		md := mode{findUnused: rapid.Bool().Draw(t, "unused"), hold: rapid.Bool().Draw(t, "hold"), record: true}
		names := make([]string, len(items))
		for i := range names {
			names[i] = fmt.Sprintf("p%d", i)
		}
		m := newMachine(names, buckets, md)
		members := flatten(buckets)
		for step := range 3 {
			s := &slow{buckets: buckets, ready: map[int]bool{}, hold: md.hold, unused: md.findUnused}
			order := rapid.Permutation(slices.Clone(members)).Draw(t, "order")
			given := order[:rapid.IntRange(len(order)/2, len(order)).Draw(t, "given")]
			for _, i := range given {
				s.ready[i] = true
				require.Equal(t, s.launches(false), launches(m.gradReady(i)))
			}
			acts := slices.Clone(m.finish())
			missing := order[len(given):]
			if len(missing) > 0 && !md.findUnused {
				require.Equal(t, []action{{actFail, -1}}, acts)
				require.ErrorIs(t, m.err, goccl.ErrInvalid)
				require.Contains(t, m.err.Error(), fmt.Sprintf("%d of %d gradients", len(missing), len(order)))
				return
			}
			zeroed := 0
			for _, a := range acts {
				if a.kind == actZero {
					require.Contains(t, missing, a.index)
					s.ready[a.index] = true
					zeroed++
				}
			}
			require.Len(t, missing, zeroed)
			require.Equal(t, s.launches(true), launches(acts))
			require.Equal(t, len(buckets), m.launched)
			var last []action
			for _, b := range rapid.Permutation(reversed(len(buckets))).Draw(t, "ends") {
				last = slices.Clone(m.reduced(b, nil))
				require.Equal(t, action{actCopyBack, b}, last[0])
			}
			if len(buckets) > 0 {
				require.Contains(t, last, action{actDone, -1})
				require.Equal(t, step == 0, slices.Contains(last, action{actRebuild, -1}), "rebuilt once")
			}
			if step == 0 {
				require.True(t, slices.Equal(given, m.readyOrder()[:len(given)]))
				require.ElementsMatch(t, members, m.readyOrder())
			}
			m.begin()
		}
	})
}

func TestMachineAllocatesNothing(t *testing.T) {
	m := newMachine([]string{"a", "b", "c"}, [][]int{{2, 1}, {0}}, mode{})
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for i := range 3 {
			m.gradReady(i)
		}
		m.finish()
		m.reduced(0, nil)
		m.reduced(1, nil)
		m.begin()
	}))
}
