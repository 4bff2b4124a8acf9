package shmem

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goccl/goccl"
)

// childHandle, when set, makes the test binary a second process: it maps the
// segment, writes into it, says so, and waits for its standard input to end.
const childHandle = "GOCCL_TEST_SEGMENT"

func TestMain(m *testing.M) {
	text := os.Getenv(childHandle)
	if text == "" {
		os.Exit(m.Run())
	}
	os.Exit(child(text))
}

func child(text string) int {
	b, err := hex.DecodeString(text)
	if err == nil {
		var s *Segment
		if s, err = Open(b); err == nil {
			s.Mem().Word(8).Store(s.Mem().Word(0).Load() + 1)
		}
	}
	fmt.Println("result:", err)
	bufio.NewReader(os.Stdin).ReadByte()
	return 0
}

func openFiles(t *testing.T) int {
	names, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(names)
}

func mappings(t *testing.T, name string) int {
	b, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	return strings.Count(string(b), "memfd:"+name)
}

func TestSegmentIsSeenByAnotherProcess(t *testing.T) {
	s, err := Create("goccl-test", 3<<20)
	require.NoError(t, err)
	defer s.Close()
	require.Equal(t, 3<<20, s.Mem().Len())
	s.Mem().Word(0).Store(41)
	for range 2 { // a killed process leaves nothing in the way of the next
		s.Mem().Word(8).Store(0)
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childHandle+"="+hex.EncodeToString(s.Handle()))
		stdin, err := cmd.StdinPipe()
		require.NoError(t, err)
		defer stdin.Close()
		stdout, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		line, err := bufio.NewReader(stdout).ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "result: <nil>\n", line)
		require.Equal(t, uint64(42), s.Mem().Word(8).Load())
		require.NoError(t, cmd.Process.Kill())
		require.Error(t, cmd.Wait())
	}
}

func TestSegmentLeavesNothing(t *testing.T) {
	before := openFiles(t)
	for i := range 50 {
		s, err := Create("goccl-leak", 4096+i)
		require.NoError(t, err)
		peer, err := Open(s.Handle())
		require.NoError(t, err)
		require.NoError(t, s.Seal())
		require.NoError(t, s.Seal())
		s.Mem().Word(0).Store(uint64(i))
		require.NoError(t, s.Close())
		require.NoError(t, s.Close())
		require.Equal(t, uint64(i), peer.Mem().Word(0).Load(), "memory stays with its last mapping")
		require.NoError(t, peer.Close())
	}
	require.Equal(t, before, openFiles(t))
	require.Zero(t, mappings(t, "goccl-leak"))
}

func TestOpenRefuses(t *testing.T) {
	s, err := Create("goccl-test", 4096)
	require.NoError(t, err)
	defer s.Close()
	h, err := decodeHandle(s.Handle())
	require.NoError(t, err)
	plain, err := os.CreateTemp(t.TempDir(), "plain")
	require.NoError(t, err)
	defer plain.Close()
	unsealed := func(h *handle) {
		fd := int(plain.Fd())
		require.NoError(t, unix.Ftruncate(fd, headerBytes+4096))
		var st unix.Stat_t
		require.NoError(t, unix.Fstat(fd, &st))
		h.fd, h.dev, h.ino = fd, st.Dev, st.Ino
	}
	tests := []struct {
		name string
		edit func(*handle)
		want string
	}{
		{"other size", func(h *handle) { h.bytes = 8192 }, "it has 4096 bytes, want 8192"},
		{"other nonce", func(h *handle) { h.nonce[3]++ }, "another nonce"},
		{"other file", func(h *handle) { h.ino++ }, "another file now"},
		{"descriptor not open", func(h *handle) { h.fd = 1 << 20 }, "has ended, closed the segment"},
		{"no such process", func(h *handle) { h.pid = 1<<31 - 1 }, "has ended, closed the segment"},
		{"not a segment", unsealed, "seal"},
		{"no process", func(h *handle) { h.pid = 0 }, "process 0"},
		{"no bytes", func(h *handle) { h.bytes = 0 }, "0 bytes"},
	}
	before := openFiles(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bad := h
			test.edit(&bad)
			_, err := Open(bad.encode())
			require.ErrorContains(t, err, test.want)
		})
	}
	require.NoError(t, s.Seal())
	_, err = Open(s.Handle())
	require.Error(t, err, "a sealed segment takes no further process")
	require.Equal(t, before-1, openFiles(t))
}

// The pages are reserved when the segment is made, so that a lack of memory is
// an error that names the size and never a bus error later.
func TestC51LackOfMemoryIsAnError(t *testing.T) {
	before := openFiles(t)
	_, err := Create("goccl-test", 1<<45)
	require.ErrorContains(t, err, "35184372088832 bytes of memory wanted")
	_, err = Create("goccl-test", maxBytes+1)
	require.ErrorIs(t, err, goccl.ErrInvalid)
	require.Equal(t, before, openFiles(t))

	s, err := Create("goccl-test", 5<<20)
	require.NoError(t, err)
	defer s.Close()
	var st unix.Stat_t
	require.NoError(t, unix.Fstat(s.fd, &st))
	require.GreaterOrEqual(t, st.Blocks*512, int64(5<<20), "pages were not reserved")
}

func TestC51FreeMemory(t *testing.T) {
	free, ok := meminfoFree("MemTotal: 100 kB\nMemFree: 1 kB\nMemAvailable:    20 kB\nSwapFree: 2 kB\n")
	require.True(t, ok)
	require.Equal(t, 22<<10, free)
	_, ok = meminfoFree("MemFree: 1 kB\nSwapFree: 5 kB\nMemAvailable: lots\n")
	require.False(t, ok)

	tests := []struct {
		name, groups string
		files        map[string]string
		want         int
		ok           bool
	}{
		{"v2", "0::/a\n", map[string]string{"a/memory.max": "1000\n", "a/memory.current": "400\n"}, 600, true},
		{"v2 without a limit", "0::/a\n", map[string]string{"a/memory.max": "max\n", "a/memory.current": "400\n"}, 0, false},
		{"v2 above its limit", "0::/a\n", map[string]string{"a/memory.max": "10\n", "a/memory.current": "400\n"}, 0, true},
		{"v1", "5:cpu:/b\n4:memory:/a\n", map[string]string{"memory/a/memory.limit_in_bytes": "9\n", "memory/a/memory.usage_in_bytes": "4\n"}, 5, true},
		{"nothing", "x\n", nil, 0, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			root := t.TempDir()
			for name, text := range test.files {
				path := filepath.Join(root, name)
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
				require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
			}
			got, ok := cgroupFree(root, test.groups)
			require.Equal(t, test.ok, ok)
			require.Equal(t, test.want, got)
		})
	}
}
