// Package lock is the record of what the committed kernels were compiled from:
// compiler, flags, the hash of every source file and of every image, and what the
// compiler reported of each kernel. It needs no compiler, so a plain test notices
// a source that was edited without compiling it again.
package lock

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// Lock is the content of kernels.lock. Its parts are sorted.
type Lock struct {
	Compiler string   // name and full version: nvrtc 12.9.86
	Flags    []string // of all compilations, without the target
	Modules  []Module
}

// Module is one .cu file and what was made of it.
type Module struct {
	Name    string // of the .cu file, without the ending
	Sources []File // the .cu file and every header it includes, by path
	Kernels []Kernel
	Images  []File // by path
}

// File is a file and the SHA-256 of its content in hexadecimal.
type File struct{ Path, Sum string }

// Kernel is what the compiler reported of one kernel for one target.
type Kernel struct {
	Name, Target      string
	Registers, Shared int // a thread's registers, a block's bytes of static shared memory
}

// Sum is the hash that a File has.
func Sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

const head = "# Written by cu2go: what the files in bin were compiled from. make gen writes it anew.\n"

// Text writes l, one fact a line.
func (l Lock) Text() []byte {
	var b strings.Builder
	b.WriteString(head)
	fmt.Fprintf(&b, "compiler %s\nflags %s\n", l.Compiler, strings.Join(l.Flags, " "))
	for _, m := range l.Modules {
		fmt.Fprintf(&b, "\nmodule %s\n", m.Name)
		for _, f := range m.Sources {
			fmt.Fprintf(&b, "source %s %s\n", f.Sum, f.Path)
		}
		for _, k := range m.Kernels {
			fmt.Fprintf(&b, "kernel %s %s registers %d shared %d\n", k.Name, k.Target, k.Registers, k.Shared)
		}
		for _, f := range m.Images {
			fmt.Fprintf(&b, "image %s %s\n", f.Sum, f.Path)
		}
	}
	return []byte(b.String())
}

// Parse reads what Text wrote.
func Parse(text []byte) (Lock, error) {
	var l Lock
	for i, line := range strings.Split(string(text), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if !l.parse(strings.Fields(line)) {
			return Lock{}, fmt.Errorf("kernels.lock:%d: %q is no line of a lock; run make gen", i+1, line)
		}
	}
	return l, nil
}

func (l *Lock) parse(f []string) bool {
	switch f[0] {
	case "compiler":
		l.Compiler = strings.Join(f[1:], " ")
		return len(f) == 3
	case "flags":
		l.Flags = f[1:]
		return true
	case "module":
		if len(f) == 2 {
			l.Modules = append(l.Modules, Module{Name: f[1]})
			return true
		}
	}
	if len(l.Modules) == 0 {
		return false
	}
	m := &l.Modules[len(l.Modules)-1]
	switch {
	case f[0] == "source" && len(f) == 3:
		m.Sources = append(m.Sources, File{Sum: f[1], Path: f[2]})
	case f[0] == "image" && len(f) == 3:
		m.Images = append(m.Images, File{Sum: f[1], Path: f[2]})
	case f[0] == "kernel" && len(f) == 7 && f[3] == "registers" && f[5] == "shared":
		registers, err := strconv.Atoi(f[4])
		shared, err2 := strconv.Atoi(f[6])
		m.Kernels = append(m.Kernels, Kernel{Name: f[1], Target: f[2], Registers: registers, Shared: shared})
		return err == nil && err2 == nil
	default:
		return false
	}
	return true
}

// Check holds l against the folder that it describes and returns what differs, a
// line each: a source that changed, a header more or less, an image that is not
// the one that was compiled, a .cu file or an image that l does not know.
func (l Lock) Check(fsys fs.FS) ([]string, error) {
	var bad []string
	known := map[string]bool{}
	for _, m := range l.Modules {
		known[m.Name+".cu"] = true
		for _, f := range m.Images {
			known[f.Path] = true
			b, err := fs.ReadFile(fsys, f.Path)
			if err != nil {
				bad = append(bad, fmt.Sprintf("%s: %v", f.Path, err))
			} else if Sum(b) != f.Sum {
				bad = append(bad, f.Path+" is not what was compiled")
			}
		}
		now, err := Closure(fsys, m.Name+".cu")
		if err != nil {
			bad = append(bad, err.Error())
			continue
		}
		bad = append(bad, changed(m, now)...)
	}
	for _, pattern := range []string{"*.cu", "bin/*"} {
		files, err := fs.Glob(fsys, pattern)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			if !known[f] {
				bad = append(bad, f+" is not in kernels.lock")
			}
		}
	}
	return bad, nil
}

// changed compares the sources of m with those of today.
func changed(m Module, now []File) []string {
	var bad []string
	was := map[string]string{}
	for _, f := range m.Sources {
		was[f.Path] = f.Sum
	}
	for _, f := range now {
		switch sum, ok := was[f.Path]; {
		case !ok:
			bad = append(bad, fmt.Sprintf("%s.cu includes %s now", m.Name, f.Path))
		case sum != f.Sum:
			bad = append(bad, fmt.Sprintf("%s changed after %s.cu was compiled", f.Path, m.Name))
		}
		delete(was, f.Path)
	}
	for path := range was {
		bad = append(bad, fmt.Sprintf("%s.cu includes %s no longer", m.Name, path))
	}
	slices.Sort(bad)
	return bad
}

// Sort brings the parts into their order.
func (l *Lock) Sort() {
	byPath := func(a, b File) int { return strings.Compare(a.Path, b.Path) }
	for _, m := range l.Modules {
		slices.SortFunc(m.Sources, byPath)
		slices.SortFunc(m.Images, byPath)
		slices.SortFunc(m.Kernels, func(a, b Kernel) int {
			return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Target, b.Target))
		})
	}
	slices.SortFunc(l.Modules, func(a, b Module) int { return strings.Compare(a.Name, b.Name) })
}
