package store

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/internal/leak"
)

// roleEnv turns the test binary into a process that uses the file named by it.
const roleEnv = "STORE_TEST_FILE"

func TestMain(m *testing.M) {
	if path := os.Getenv(roleEnv); path != "" {
		os.Exit(fileProcess(path))
	}
	os.Exit(leak.Check(m))
}

// fileProcess adds to a counter for as long as it lives, or until stdin ends.
func fileProcess(path string) int {
	s, err := NewFile(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	fmt.Println("ready")
	var n int64
	for ctx.Err() == nil {
		if _, err := s.Add(ctx, "n", 1); err == nil {
			n++
		} else if ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	fmt.Println(n)
	return 0
}

// Several processes count in one file and one of them is killed: nothing is
// lost but what it had not finished.
func TestFileProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	type proc struct {
		cmd *exec.Cmd
		in  io.Closer
		out *bufio.Reader
	}
	var procs []proc
	for range 3 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), roleEnv+"="+path, "GORACE=atexit_sleep_ms=0") // no second of waiting in race builds
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		procs = append(procs, proc{cmd, in, bufio.NewReader(out)})
	}
	for _, p := range procs {
		line, err := p.out.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "ready\n", line)
	}
	s, err := NewFile(path)
	require.NoError(t, err)
	var mine int64
	for range 20 {
		_, err := s.Add(t.Context(), "n", 1)
		require.NoError(t, err)
		mine++
	}
	require.NoError(t, procs[0].cmd.Process.Kill())
	require.Error(t, procs[0].cmd.Wait())
	_, err = s.Add(t.Context(), "n", 0)
	require.NoError(t, err, "the lock of a killed process is free")
	sum := mine
	for _, p := range procs[1:] {
		require.NoError(t, p.in.Close())
		var n int64
		_, err := fmt.Fscan(p.out, &n)
		require.NoError(t, err)
		require.NoError(t, p.cmd.Wait())
		sum += n
	}
	n, err := s.Add(t.Context(), "n", 0)
	require.NoError(t, err)
	require.GreaterOrEqual(t, n, sum, "no addition was lost")
	require.NoError(t, s.Close())
}

// A writer that is killed leaves any part of its record behind.
func TestFileTornRecord(t *testing.T) {
	ctx := t.Context()
	good := appendRecord([]byte(fileHeader), record{recordPut, "k", []byte("old")})
	torn := appendRecord(nil, record{recordPut, "k", []byte("half written")})
	for cut := range len(torn) {
		path := filepath.Join(t.TempDir(), "store")
		require.NoError(t, os.WriteFile(path, append(bytes.Clone(good), torn[:cut]...), 0o600))
		reader, err := NewFile(path)
		require.NoError(t, err)
		got, err := reader.Get(ctx, "k")
		require.NoError(t, err)
		require.Equal(t, "old", string(got), "cut at %d", cut)

		writer, err := NewFile(path)
		require.NoError(t, err)
		require.NoError(t, writer.Set(ctx, "k", []byte(fmt.Sprint("new", cut))))
		require.NoError(t, writer.Close())
		got, err = reader.Get(ctx, "k")
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint("new", cut), string(got))
		require.NoError(t, reader.Close())
	}
}

func TestFileTornHeader(t *testing.T) {
	for cut := range len(fileHeader) {
		path := filepath.Join(t.TempDir(), "store")
		require.NoError(t, os.WriteFile(path, []byte(fileHeader[:cut]), 0o600))
		s, err := NewFile(path)
		require.NoError(t, err)
		require.NoError(t, s.Set(t.Context(), "k", []byte("v")))
		require.NoError(t, s.Close())
	}
}

func TestFileRefusesForeign(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notes.txt")
	text := []byte("a file that someone needs, long enough to be no torn header")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	_, err := NewFile(path)
	require.ErrorIs(t, err, goccl.ErrInvalid)
	require.ErrorContains(t, err, path)
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, text, got)

	_, err = NewFile(filepath.Join(t.TempDir(), "absent", "store"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// A process that is stopped while it holds the lock delays others no longer than
// their context allows.
func TestFileLockIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	s, err := NewFile(path)
	require.NoError(t, err)
	defer s.Close()
	other, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer other.Close()
	ok, err := tryLockFile(other)
	require.NoError(t, err)
	require.True(t, ok)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	err = s.Set(ctx, "k", nil)
	require.ErrorIs(t, err, goccl.ErrTimeout)
	require.ErrorContains(t, err, path)
	require.ErrorContains(t, err, "holds the lock")
	require.NoError(t, unlockFile(other))
	require.NoError(t, s.Set(t.Context(), "k", nil))
}

func FuzzFileLog(f *testing.F) {
	log := appendRecord(nil, record{recordPut, "key", []byte("value")})
	log = appendRecord(log, record{recordDelete, "key", nil})
	f.Add(log)
	f.Add(log[3:])
	f.Fuzz(func(t *testing.T, b []byte) {
		for len(b) > 0 {
			r, n := readRecord(b)
			if n == 0 {
				return
			}
			if n > len(b) {
				t.Fatalf("a record of %d bytes out of %d", n, len(b))
			}
			if again := appendRecord(nil, r); !bytes.Equal(again, b[:n]) {
				t.Fatalf("%x reads as %+v", b[:n], r)
			}
			b = b[n:]
		}
	})
}
