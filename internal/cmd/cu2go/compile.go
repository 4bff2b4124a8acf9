package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/goccl/goccl/internal/cmd/cu2go/build"
	"github.com/goccl/goccl/internal/cmd/cu2go/nvrtc"
)

const lockFile = "kernels.lock"

// compiler is NVRTC as package build wants it.
type compiler struct{ *nvrtc.Compiler }

var _ build.Compiler = compiler{}

func (c compiler) Compile(u build.Unit, options []string, ptx bool) ([]byte, string, error) {
	return c.Compiler.Compile(nvrtc.Source{Name: u.Name, Text: u.Text, Headers: u.Headers}, options, ptx)
}

// compile builds the kernels of dir and returns all files that belong there, by
// path relative to dir.
func compile(library, dir string) (map[string][]byte, error) {
	c, err := nvrtc.Open(library)
	if err != nil {
		return nil, err
	}
	out, err := build.Build(os.DirFS(dir), compiler{c})
	if err != nil {
		return nil, err
	}
	files := maps.Clone(out.Images)
	files[lockFile] = out.Lock.Text()
	return files, nil
}

// generate compiles dir and makes its files what they should be, also by removing
// images that no source makes any more.
func generate(library, dir string) error {
	files, err := compile(library, dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o755); err != nil {
		return err
	}
	for path, b := range files {
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(path)), b, 0o644); err != nil {
			return err
		}
	}
	stale, err := unknown(files, dir)
	for _, path := range stale {
		err = errors.Join(err, os.Remove(filepath.Join(dir, path)))
	}
	return err
}

// verify compiles dir and reports to w each file that is not what was compiled. It
// writes nothing in dir.
func verify(library, dir string, w io.Writer) error {
	files, err := compile(library, dir)
	if err != nil {
		return err
	}
	bad := 0
	for _, path := range slices.Sorted(maps.Keys(files)) {
		have, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(path)))
		switch {
		case err != nil:
			fmt.Fprintf(w, "%s: %v\n", path, err)
		case path == lockFile && !bytes.Equal(have, files[path]):
			fmt.Fprintf(w, "%s differs: %s\n", path, firstDifference(have, files[path]))
		case !bytes.Equal(have, files[path]):
			fmt.Fprintf(w, "%s differs: %d bytes are committed, %d were compiled\n", path, len(have), len(files[path]))
		default:
			continue
		}
		bad++
	}
	stale, err := unknown(files, dir)
	if err != nil {
		return err
	}
	for _, path := range stale {
		fmt.Fprintf(w, "%s is made from no source\n", path)
	}
	if bad += len(stale); bad > 0 {
		return fmt.Errorf("%d files in %s are not what their sources compile to; run make gen and commit them", bad, dir)
	}
	fmt.Fprintf(w, "%d files in %s are what their sources compile to\n", len(files), dir)
	return nil
}

// unknown lists what lies in dir/bin and is not in files.
func unknown(files map[string][]byte, dir string) ([]string, error) {
	all, err := filepath.Glob(filepath.Join(dir, "bin", "*"))
	if err != nil {
		return nil, err
	}
	var stale []string
	for _, f := range all {
		path := "bin/" + filepath.Base(f)
		if files[path] == nil {
			stale = append(stale, path)
		}
	}
	return stale, nil
}

// firstDifference shows the first line in which two texts differ.
func firstDifference(have, want []byte) string {
	h, w := bytes.Split(have, []byte("\n")), bytes.Split(want, []byte("\n"))
	for i := range max(len(h), len(w)) {
		var a, b []byte
		if i < len(h) {
			a = h[i]
		}
		if i < len(w) {
			b = w[i]
		}
		if !bytes.Equal(a, b) {
			return fmt.Sprintf("line %d is %q, compiled was %q", i+1, a, b)
		}
	}
	return "not at all"
}
