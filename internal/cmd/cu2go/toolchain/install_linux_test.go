package toolchain

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func sha(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// stage makes a pin and a python3, found first, whose pip brings the wheel of it.
// The folder it returns has the arguments of each call in a file calls.
func stage(t *testing.T, files map[string]string) (pin, string) {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	p := pin{machine: "toaster", library: map[string]string{}}
	for name, text := range files {
		w, err := z.Create("nvidia/lib/" + name)
		require.NoError(t, err)
		_, err = io.WriteString(w, text)
		require.NoError(t, err)
	}
	for _, name := range []string{mainLibrary, "libother.so"} {
		p.library[name] = sha([]byte("code of " + name))
	}
	require.NoError(t, z.Close())
	p.wheel = sha(b.Bytes())
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "served"), b.Bytes(), 0o644))
	script := `#!/bin/sh
echo "$@" >>"` + dir + `/calls"
while [ "$1" != -d ]; do shift; done
cat "$4" >>"` + dir + `/calls"
cp "` + dir + `/served" "$2/x.whl"
`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "python3"), []byte(script), 0o755))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return p, dir
}

func whole() map[string]string {
	return map[string]string{mainLibrary: "code of " + mainLibrary, "libother.so": "code of libother.so", "more.txt": "ignored"}
}

func TestInstallBringsTheLibrariesOnce(t *testing.T) {
	p, dir := stage(t, whole())
	cache := filepath.Join(t.TempDir(), "new", "cache")
	path, err := p.install(cache, io.Discard)
	require.NoError(t, err)
	for range 2 {
		have, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, "code of "+mainLibrary, string(have))
		calls, err := os.ReadFile(filepath.Join(dir, "calls"))
		require.NoError(t, err)
		require.Equal(t, 1, bytes.Count(calls, []byte("-m pip download")), "%s", calls)
		require.Contains(t, string(calls), "--require-hashes")
		require.Contains(t, string(calls), wheel+"=="+Version+" --hash=sha256:"+p.wheel)
		path, err = p.install(cache, io.Discard)
		require.NoError(t, err)
	}
	left, err := os.ReadDir(cache)
	require.NoError(t, err)
	require.Len(t, left, 1, "nothing but the libraries stays")
	inside, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, inside, 2)
}

func TestInstallReplacesADamagedLibrary(t *testing.T) {
	p, _ := stage(t, whole())
	cache := t.TempDir()
	path, err := p.install(cache, io.Discard)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte("half of the co"), 0o755))
	require.ErrorContains(t, p.check(p.dir(cache)), "pinned is")
	_, err = p.install(cache, io.Discard)
	require.NoError(t, err)
	require.NoError(t, p.check(p.dir(cache)))
}

func TestInstallRefusesOtherCode(t *testing.T) {
	files := whole()
	files["libother.so"] = "other code"
	p, _ := stage(t, files)
	cache := t.TempDir()
	_, err := p.install(cache, io.Discard)
	require.ErrorContains(t, err, "libother.so has SHA-256 "+sha([]byte("other code")))
	_, err = os.Stat(p.dir(cache))
	require.ErrorIs(t, err, os.ErrNotExist, "nothing of it may be found later")

	files = whole()
	delete(files, mainLibrary)
	p, _ = stage(t, files)
	_, err = p.install(cache, io.Discard)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestInstallSaysWhatPipLacks(t *testing.T) {
	p, dir := stage(t, whole())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "python3"), []byte("#!/bin/sh\necho no route >&2\nexit 3\n"), 0o755))
	var log bytes.Buffer
	_, err := p.install(t.TempDir(), &log)
	require.ErrorContains(t, err, "pip could not bring "+wheel+" "+Version)
	require.Contains(t, log.String(), "no route")
	t.Setenv("PATH", t.TempDir())
	_, err = p.install(t.TempDir(), io.Discard)
	require.ErrorContains(t, err, "install Python 3 with pip")
}

func TestPinsAreWhole(t *testing.T) {
	for arch, p := range pins {
		require.Len(t, p.library, 2, arch)
		require.Contains(t, p.library, mainLibrary)
		for _, s := range append([]string{p.wheel}, p.library[mainLibrary]) {
			b, err := hex.DecodeString(s)
			require.NoError(t, err)
			require.Len(t, b, sha256.Size)
		}
	}
	path, err := Find(t.TempDir())
	require.ErrorIs(t, err, os.ErrNotExist)
	require.Equal(t, mainLibrary, filepath.Base(path))
}
