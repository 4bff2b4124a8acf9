package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/trace"
)

func TestVerdict(t *testing.T) {
	dir := t.TempDir()
	verdict := func(args ...string) (code int, out, errs string) {
		var stdout, stderr bytes.Buffer
		code = verdictMain(args, &stdout, &stderr)
		return code, stdout.String(), stderr.String()
	}

	code, out, errs := verdict()
	require.Equal(t, 2, code)
	require.Empty(t, out)
	require.Contains(t, errs, "usage: gocclrun verdict DIR")

	code, out, _ = verdict("-help")
	require.Equal(t, 0, code)
	require.Contains(t, out, "usage:")

	code, _, errs = verdict(dir)
	require.Equal(t, 1, code)
	require.Contains(t, errs, dir)

	for r, last := range []uint64{2, 1} {
		d := &trace.Dump{Version: trace.Version, Group: "world", Rank: r, Size: 2, Host: "n", PID: 7 + r}
		for seq := uint64(1); seq <= last; seq++ {
			d.Entries = append(d.Entries, trace.Entry{Seq: seq, Op: "barrier", Root: -1, State: []string{trace.Done, trace.Started}[seq-1]})
		}
		_, err := trace.Save(dir, d)
		require.NoError(t, err)
	}
	code, out, errs = verdict(dir)
	require.Equal(t, 0, code, errs)
	require.Equal(t, "rank 1 (n, pid 8) of group \"world\" never called barrier #2, which rank 0 (n, pid 7) waits in; its last was barrier #1\n", out)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "goccl-other-rank0.json"), []byte("{"), 0o644))
	code, _, errs = verdict(dir)
	require.Equal(t, 1, code)
	require.Contains(t, errs, "goccl-other-rank0.json")
}
