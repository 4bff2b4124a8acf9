//go:build unix

package dist_test

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/trace"
)

func TestSignalDumpsEveryGroup(t *testing.T) {
	dir := t.TempDir()
	jobs, err := dist.InitLocal(t.Context(), 2, dist.Config{Diagnose: true, DumpDir: dir})
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGUSR2))
	for _, name := range []string{"goccl-world-rank0.json", "goccl-world-rank1.json"} {
		require.Eventually(t, func() bool { _, err := os.Stat(filepath.Join(dir, name)); return err == nil }, time.Minute, time.Millisecond)
	}
	dumps, err := trace.Load(dir)
	require.NoError(t, err)
	for r, d := range dumps {
		require.Equal(t, r, d.Rank)
		require.Equal(t, "signal: user defined signal 2", d.Reason)
	}
	closeAll(t, jobs)
}

func closeAll(t *testing.T, jobs []*dist.Job) {
	t.Helper()
	done := make(chan error)
	for _, j := range jobs {
		go func() { done <- j.Close() }()
	}
	for range jobs {
		require.NoError(t, <-done)
	}
}

// Without a folder, only a timeout leaves dumps behind, where the program runs.
func TestTimeoutDumpsIntoTheWorkingFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	errs := each(t, 2, dist.Config{Diagnose: true, Timeout: 100 * time.Millisecond}, func(ctx context.Context, g *dist.Group) error {
		if g.Rank() == 1 {
			<-ctx.Done()
			return nil
		}
		return sum(ctx, g, 10)
	})
	require.ErrorIs(t, errs[0], goccl.ErrTimeout)
	for _, name := range []string{"goccl-world-rank0.json", "goccl-world-rank1.json"} {
		require.FileExists(t, name)
	}
	each(t, 2, dist.Config{Diagnose: true}, func(ctx context.Context, g *dist.Group) error {
		require.NoError(t, os.RemoveAll("goccl-world-rank0.json"))
		return context.Canceled
	})
	require.NoFileExists(t, "goccl-world-rank0.json")
}
