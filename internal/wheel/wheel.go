// Package wheel brings libraries that vendors publish as Python wheels into a
// cache: archives of which a few files are all that is needed. pip downloads them,
// with the index, proxy and certificates that the user has set up for pip, and
// refuses one that is not byte for byte the pinned one. It is for tests and for
// generating code; nothing in the library uses it.
package wheel

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// patience bounds a download, of some hundred megabytes.
const patience = 10 * time.Minute

// Pin is one version of a package.
type Pin struct {
	Package, Version string
	Linux            map[string]Wheel // by GOARCH
}

// Wheel is the archive for one processor. Hashes are SHA-256 in hex.
type Wheel struct {
	Hash string
	// Files are what is needed of it, by path in the archive, with their hashes. ""
	// takes what the archive holds, and does not look at it again.
	Files map[string]string
}

// Install returns the folder that holds the pinned files under their paths in the
// archive, after putting them there if need be; progress goes to log. A file that is
// not byte for byte the pinned one is replaced. cache is the folder for all pins, ""
// for goccl's in the user's cache. Several processes may install at once. It blocks
// for the time of a download, ten minutes at most.
func (p Pin) Install(cache string, log io.Writer) (string, error) {
	dir, err := p.Find(cache)
	if err == nil || dir == "" {
		return dir, err
	}
	return dir, p.fill(dir, log)
}

// Find returns the folder where Install puts the files, and why they are not all
// there, if so. It brings nothing. The folder is "" where there is none to be.
func (p Pin) Find(cache string) (string, error) {
	w, ok := p.Linux[runtime.GOARCH]
	if runtime.GOOS != "linux" || !ok {
		return "", fmt.Errorf("%s %s is not pinned for %s/%s", p.Package, p.Version, runtime.GOOS, runtime.GOARCH)
	}
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("no place for %s %s: %w", p.Package, p.Version, err)
		}
		cache = filepath.Join(user, "goccl")
	}
	cache, err := filepath.Abs(cache)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, fmt.Sprintf("%s-%s-%s", p.Package, p.Version, w.Hash[:12]))
	return dir, w.check(dir)
}

// check reports the first file in dir that is not the pinned one. A folder has its
// name when it is complete, and not before.
func (w Wheel) check(dir string) error {
	for _, name := range slices.Sorted(maps.Keys(w.Files)) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if _, err := os.Stat(path); err != nil {
			return err
		}
		want := w.Files[name]
		if want == "" {
			continue
		}
		switch got, err := sum(path); {
		case err != nil:
			return err
		case got != want:
			return fmt.Errorf("%s has SHA-256 %s, pinned is %s", path, got, want)
		}
	}
	return nil
}

func sum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// fill makes dir in a folder of its own beside it, which gets its name when all is
// there.
func (p Pin) fill(dir string, log io.Writer) error {
	cache, w := filepath.Dir(dir), p.Linux[runtime.GOARCH]
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(cache, "install-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	archive, err := p.download(tmp, w.Hash, log)
	if err != nil {
		return err
	}
	files := filepath.Join(tmp, "files")
	if err := w.extract(archive, files); err != nil {
		return err
	}
	if err := w.check(files); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil { // damaged, or of an older list of files
		return err
	}
	if err := os.Rename(files, dir); err != nil && w.check(dir) != nil { // else another process was faster
		return err
	}
	return nil
}

// download lets pip bring the wheel into dir and returns its path.
func (p Pin) download(dir, hash string, log io.Writer) (string, error) {
	python, err := exec.LookPath("python3")
	if err != nil {
		return "", fmt.Errorf("pip brings %s, and there is no python3; install Python 3 with pip: %w", p.Package, err)
	}
	want := filepath.Join(dir, "wheel.txt")
	line := fmt.Sprintf("%s==%s --hash=sha256:%s\n", p.Package, p.Version, hash)
	if err := os.WriteFile(want, []byte(line), 0o644); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir", "--only-binary=:all:", "--require-hashes", "-d", dir, "-r", want)
	cmd.Stdout, cmd.Stderr = log, log
	fmt.Fprintf(log, "pip brings %s %s\n", p.Package, p.Version)
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("pip could not bring %s %s: %w; what it said stands above", p.Package, p.Version, errors.Join(err, ctx.Err()))
	}
	found, err := filepath.Glob(filepath.Join(dir, "*.whl"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("pip left %d wheels in %s, want one", len(found), dir)
	}
	return found[0], nil
}

// extract copies the pinned files out of the archive into dir.
func (w Wheel) extract(archive, dir string) error {
	z, err := zip.OpenReader(archive)
	if err != nil {
		return err
	}
	defer z.Close()
	for _, name := range slices.Sorted(maps.Keys(w.Files)) {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return fmt.Errorf("%q is no path within an archive", name)
		}
		if err := copyOut(&z.Reader, name, filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			return fmt.Errorf("%s of %s: %w", name, filepath.Base(archive), err)
		}
	}
	return nil
}

func copyOut(z *zip.Reader, name, to string) error {
	in, err := z.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	mode := os.FileMode(0o644)
	if strings.Contains(filepath.Base(to), ".so") {
		mode = 0o755
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
