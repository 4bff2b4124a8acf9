package golden

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// recorder is a testing.TB that notes failures instead of failing.
type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func TestFileEqual(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.txt")
	require.NoError(t, os.WriteFile(path, []byte("one\ntwo\n"), 0o644))
	r := &recorder{TB: t}
	File(r, path, "one\ntwo")
	require.Empty(t, r.errors)
}

func TestFileDifferenceNamesLine(t *testing.T) {
	if Rewriting() {
		t.Skip("-rewrite makes every golden equal")
	}
	path := filepath.Join(t.TempDir(), "x.txt")
	require.NoError(t, os.WriteFile(path, []byte("one\ntwo\nthree\n"), 0o644))
	r := &recorder{TB: t}
	File(r, path, "one\n2\nthree\n")
	require.Len(t, r.errors, 1)
	require.Contains(t, r.errors[0], "    2 - two")
	require.Contains(t, r.errors[0], "    2 + 2")
}

func TestWriteMakesFolders(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b.txt")
	write(t, path, "x\n")
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "x\n", string(b))
}

const script = `# adds

add 1 2
3
----
1 2 3

blank
----
----
a

b
----
----

none
----
`

func TestReplay(t *testing.T) {
	run := func(c Case) string {
		switch c.Cmd {
		case "add":
			return strings.Join(append(c.Args, strings.TrimSpace(c.Input)), " ")
		case "blank":
			return "a\n\nb\n"
		}
		return ""
	}
	got, err := replay("s", script, run)
	require.NoError(t, err)
	require.Equal(t, script, got)

	got, err = replay("s", script, func(Case) string { return "other" })
	require.NoError(t, err)
	require.Equal(t, 3, strings.Count(got, "----\nother\n"), got)
	require.NotContains(t, got, "1 2 3")
}

func TestReplayRefusesCaseWithoutSeparator(t *testing.T) {
	for _, src := range []string{"add 1\n", "add 1\n\n----\nx\n"} {
		_, err := replay("s", src, func(Case) string { return "" })
		require.ErrorContains(t, err, `s:1: case "add 1" has no "----" line`)
	}
}
