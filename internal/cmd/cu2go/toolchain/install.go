package toolchain

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"time"
)

// patience bounds the download of 90 MB.
const patience = 10 * time.Minute

// Install returns the path of the compiler library in cache, "" for goccl's folder
// in the user's cache, after putting it there if need be; progress goes to log. A file
// that is not byte for byte the pinned one is replaced. Several processes may
// install at once. It blocks for the time of a download, ten minutes at most.
func Install(cache string, log io.Writer) (string, error) {
	p, cache, err := place(cache)
	if err != nil {
		return "", err
	}
	return p.install(cache, log)
}

// Find returns the path of the library where Install puts it, or why it is not
// there. It brings nothing.
func Find(cache string) (string, error) {
	p, cache, err := place(cache)
	if err != nil {
		return "", err
	}
	dir := p.dir(cache)
	return filepath.Join(dir, mainLibrary), p.check(dir)
}

// place returns the pin for this machine and the folder of the cache.
func place(cache string) (pin, string, error) {
	p, ok := current()
	if !ok {
		return pin{}, "", fmt.Errorf("NVRTC %s is pinned for linux on amd64 and arm64 only, not for %s/%s", Version, runtime.GOOS, runtime.GOARCH)
	}
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return pin{}, "", fmt.Errorf("no place for the compiler: %w; name one with -cache", err)
		}
		cache = filepath.Join(user, "goccl")
	}
	cache, err := filepath.Abs(cache)
	return p, cache, err
}

func (p pin) dir(cache string) string { return filepath.Join(cache, "nvrtc-"+Version+"-"+p.machine) }

func (p pin) install(cache string, log io.Writer) (string, error) {
	dir := p.dir(cache)
	if p.check(dir) != nil {
		if err := p.fill(cache, dir, log); err != nil {
			return "", err
		}
	}
	return filepath.Join(dir, mainLibrary), nil
}

// check reports the first library in dir that is not the pinned one.
func (p pin) check(dir string) error {
	for name, want := range p.library {
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		got, err := sum(f)
		f.Close()
		if err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("%s has SHA-256 %s, pinned is %s", f.Name(), got, want)
		}
	}
	return nil
}

// fill makes dir from the wheel. It works in a folder of its own beside it, whose
// files are moved when all are right, so that nobody sees half of one.
func (p pin) fill(cache, dir string, log io.Writer) error {
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(cache, "install-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	file, err := p.download(tmp, log)
	if err != nil {
		return err
	}
	libs := filepath.Join(tmp, "libs")
	if err := p.extract(file, libs); err != nil {
		return err
	}
	if err := p.check(libs); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name := range p.library {
		if err := os.Rename(filepath.Join(libs, name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// download lets pip bring the wheel into dir and returns its path. pip refuses one
// with another hash.
func (p pin) download(dir string, log io.Writer) (string, error) {
	want := filepath.Join(dir, "wheel.txt")
	line := fmt.Sprintf("%s==%s --hash=sha256:%s\n", wheel, Version, p.wheel)
	if err := os.WriteFile(want, []byte(line), 0o644); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	python, err := exec.LookPath("python3")
	if err != nil {
		return "", fmt.Errorf("pip brings NVRTC, and there is no python3: install Python 3 with pip, or give the path of a libnvrtc.so %s yourself: %w", Version, err)
	}
	cmd := exec.CommandContext(ctx, python, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes", "-d", dir, "-r", want)
	cmd.Stdout, cmd.Stderr = log, log
	fmt.Fprintf(log, "installing %s %s with pip, 90 MB\n", wheel, Version)
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("pip could not bring %s %s: %w; what it said stands above", wheel, Version, errors.Join(err, ctx.Err()))
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.whl"))
	if err != nil || len(files) != 1 {
		return "", fmt.Errorf("pip left %d wheels in %s, want one", len(files), dir)
	}
	return files[0], nil
}

// extract copies the pinned libraries out of the archive into dir.
func (p pin) extract(archive, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	z, err := zip.OpenReader(archive)
	if err != nil {
		return err
	}
	defer z.Close()
	for _, f := range z.File {
		name := path.Base(f.Name)
		if p.library[name] == "" {
			continue
		}
		if err := copyOut(f, filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("%s in %s: %w", f.Name, archive, err)
		}
	}
	return nil
}

func copyOut(f *zip.File, to string) error {
	in, err := f.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

func sum(r io.Reader) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
