package wheel

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pip plays the program in a folder that is the whole PATH.
func pip(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "python3"), []byte("#!/bin/sh\n"+script), 0o755))
	t.Setenv("PATH", dir+":/bin:/usr/bin")
}

// archive makes a wheel with the given files, each of which holds its name.
func archive(t *testing.T, names ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x-1.whl")
	f, err := os.Create(path)
	require.NoError(t, err)
	z := zip.NewWriter(f)
	for _, n := range names {
		w, err := z.Create(n)
		require.NoError(t, err)
		_, err = w.Write([]byte("this is " + n))
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	require.NoError(t, f.Close())
	return path
}

func pin(files ...string) Pin {
	w := Wheel{Hash: strings.Repeat("ab", 32), Files: map[string]string{}}
	for _, f := range files {
		w.Files[f] = ""
	}
	return Pin{Package: "x", Version: "1", Linux: map[string]Wheel{runtime.GOARCH: w}}
}

func sha(text string) string {
	h := sha256.Sum256([]byte(text))
	return hex.EncodeToString(h[:])
}

// brings is a pip that brings one archive.
func brings(wheel string) string {
	return `while [ "$1" != -d ]; do shift; done; cp ` + wheel + ` "$2/"`
}

func TestInstall(t *testing.T) {
	wheel := archive(t, "a/lib/libx.so.2", "a/include/x.h", "a/other")
	// Arguments: -m pip download ... -d DIR -r FILE
	pip(t, `
while [ "$1" != -d ]; do shift; done
cp `+wheel+` "$2/"
cat "$4" >&2
`)
	cache := t.TempDir()
	var log strings.Builder
	dir, err := pin("a/lib/libx.so.2", "a/include/x.h").Install(cache, &log)
	require.NoError(t, err)
	require.Contains(t, log.String(), "x==1 --hash=sha256:abab")
	text, err := os.ReadFile(filepath.Join(dir, "a/include/x.h"))
	require.NoError(t, err)
	require.Equal(t, "this is a/include/x.h", string(text))
	info, err := os.Stat(filepath.Join(dir, "a/lib/libx.so.2"))
	require.NoError(t, err)
	require.EqualValues(t, 0o755, info.Mode().Perm())
	left, err := os.ReadDir(cache)
	require.NoError(t, err)
	require.Len(t, left, 1, "nothing but the folder")
	inside, err := filepath.Glob(filepath.Join(dir, "a/*"))
	require.NoError(t, err)
	require.Len(t, inside, 2, "nothing that was not asked for")

	pip(t, "exit 9")
	again, err := pin("a/lib/libx.so.2", "a/include/x.h").Install(cache, &log)
	require.NoError(t, err, "it is there")
	require.Equal(t, dir, again)
	require.NoError(t, os.Remove(filepath.Join(dir, "a/include/x.h")))
	_, err = pin("a/lib/libx.so.2", "a/include/x.h").Install(cache, &log)
	require.ErrorContains(t, err, "pip could not bring x 1")
}

func TestInstallReplacesADamagedFile(t *testing.T) {
	pip(t, brings(archive(t, "a/libx.so")))
	p := pin("a/libx.so")
	p.Linux[runtime.GOARCH].Files["a/libx.so"] = sha("this is a/libx.so")
	cache := t.TempDir()
	_, err := p.Find(cache)
	require.ErrorIs(t, err, os.ErrNotExist)
	dir, err := p.Install(cache, new(strings.Builder))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a/libx.so"), []byte("half of it"), 0o755))
	_, err = p.Find(cache)
	require.ErrorContains(t, err, "pinned is")
	again, err := p.Install(cache, new(strings.Builder))
	require.NoError(t, err)
	require.Equal(t, dir, again)
	dir, err = p.Find(cache)
	require.NoError(t, err)
	require.Equal(t, again, dir)
}

func TestInstallRefusesOtherCode(t *testing.T) {
	pip(t, brings(archive(t, "a/libx.so")))
	p := pin("a/libx.so")
	p.Linux[runtime.GOARCH].Files["a/libx.so"] = sha("something else")
	cache := t.TempDir()
	dir, err := p.Install(cache, new(strings.Builder))
	require.ErrorContains(t, err, "a/libx.so has SHA-256 "+sha("this is a/libx.so"))
	_, err = os.Stat(dir)
	require.ErrorIs(t, err, os.ErrNotExist, "nothing of it may be found later")
}

func TestInstallFails(t *testing.T) {
	cache := t.TempDir()
	wheel := archive(t, "a/other")
	for want, script := range map[string]string{
		"pip could not bring x 1: exit status 3": "exit 3",
		"pip left 0 wheels":                      "exit 0",
		"a/libx.so of x-1.whl":                   brings(wheel),
	} {
		pip(t, script)
		_, err := pin("a/libx.so").Install(cache, new(strings.Builder))
		require.ErrorContains(t, err, want)
	}
	pip(t, brings(wheel))
	_, err := pin("../out").Install(cache, new(strings.Builder))
	require.ErrorContains(t, err, "no path within an archive")
	p := pin("a")
	p.Linux = nil
	_, err = p.Install(cache, new(strings.Builder))
	require.ErrorContains(t, err, "x 1 is not pinned for linux/")
	left, err := os.ReadDir(cache)
	require.NoError(t, err)
	require.Empty(t, left)
	t.Setenv("PATH", t.TempDir())
	_, err = pin("a").Install(cache, new(strings.Builder))
	require.ErrorContains(t, err, "there is no python3")
}
