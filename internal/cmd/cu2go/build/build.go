package build

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/goccl/goccl/device/kernels/lock"
)

// Unit is one file to compile, with the text of all it includes.
type Unit struct {
	Name    string
	Text    []byte
	Headers map[string][]byte
}

// Compiler compiles a Unit and returns the image and what the compiler said, which
// is also there with an error. It is safe for concurrent use.
type Compiler interface {
	Compile(u Unit, options []string, ptx bool) (image []byte, log string, err error)
}

// Output is what came of a folder.
type Output struct {
	Images map[string][]byte // by path in the folder: bin/mlp.sm_90.cubin
	Lock   lock.Lock
}

// Build compiles every .cu file in the root of fsys for every target. A kernel that
// spills, has a stack frame, or draws a warning is an error that names it; all
// such errors are reported together.
func Build(fsys fs.FS, c Compiler) (Output, error) {
	names, err := fs.Glob(fsys, "*.cu")
	if err != nil {
		return Output{}, err
	}
	if len(names) == 0 {
		return Output{}, errors.New("there is no .cu file")
	}
	var units []*unit
	var jobs errgroup.Group
	jobs.SetLimit(runtime.GOMAXPROCS(0))
	for _, name := range names {
		u, err := read(fsys, name)
		if err != nil {
			return Output{}, err
		}
		units = append(units, u)
		for i, t := range Targets {
			jobs.Go(func() error {
				r := &u.results[i]
				r.image, r.log, r.err = c.Compile(u.Unit, t.Options(), t.PTX)
				return nil // the others' errors are worth knowing too
			})
		}
	}
	if err := jobs.Wait(); err != nil {
		return Output{}, err
	}
	out := Output{Images: map[string][]byte{}, Lock: lock.Lock{Flags: Flags}}
	var failed []error
	for _, u := range units {
		failed = append(failed, out.add(u))
	}
	out.Lock.Sort()
	return out, errors.Join(failed...)
}

// unit is a Unit with its hashes and what came of it for each target.
type unit struct {
	Unit
	sources []lock.File
	results []result
}

type result struct {
	image []byte
	log   string
	err   error
}

func read(fsys fs.FS, name string) (*unit, error) {
	texts, err := lock.Texts(fsys, name)
	if err != nil {
		return nil, err
	}
	sources, err := lock.Closure(fsys, name)
	if err != nil {
		return nil, err
	}
	u := &unit{Unit: Unit{Name: name, Text: texts[name], Headers: texts}, sources: sources, results: make([]result, len(Targets))}
	delete(u.Headers, name)
	return u, nil
}

// add takes the results of u into the output.
func (o *Output) add(u *unit) error {
	m := lock.Module{Name: strings.TrimSuffix(u.Name, ".cu"), Sources: u.sources}
	var failed []error
	for i, t := range Targets {
		r := u.results[i]
		err := r.err
		switch {
		case err != nil:
			// The other targets would say the same again.
			return errors.Join(append(failed, fmt.Errorf("%s for %s: %w\n%s", u.Name, t.Arch, err, shorten(r.log)))...)
		case t.PTX:
			err = o.version(r.image)
		default:
			err = report(&m, t, r.image, r.log)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s for %s: %w", u.Name, t.Arch, err))
		}
		if t.Ext != "" {
			file := path.Join("bin", m.Name+"."+t.Ext)
			o.Images[file] = r.image
			m.Images = append(m.Images, lock.File{Path: file, Sum: lock.Sum(r.image)})
		}
	}
	o.Lock.Modules = append(o.Lock.Modules, m)
	return errors.Join(failed...)
}

// shorten keeps the beginning of a long text: what follows a first error is rarely
// news.
func shorten(text string) string {
	const most = 40
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) <= most {
		return strings.Join(lines, "\n")
	}
	return fmt.Sprintf("%s\n... and %d lines more", strings.Join(lines[:most], "\n"), len(lines)-most)
}

// release is how PTX says which compiler made it.
var release = regexp.MustCompile(`(?m)^// Cuda compilation tools, release [0-9.]+, V([0-9.]+)$`)

// version takes the compiler's full version from PTX; the library itself tells only
// its release.
func (o *Output) version(ptx []byte) error {
	m := release.FindSubmatch(ptx)
	if m == nil {
		return errors.New("the PTX does not say which compiler made it")
	}
	v := "nvrtc " + string(m[1])
	if o.Lock.Compiler != "" && o.Lock.Compiler != v {
		return fmt.Errorf("compiled by %s, other files by %s", v, o.Lock.Compiler)
	}
	o.Lock.Compiler = v
	return nil
}

// report adds the kernels of a cubin to m, and says what is wrong with them. The
// cubin itself is asked which kernels it has, so that none lacks a report.
func report(m *lock.Module, t Target, cubin []byte, log string) error {
	functions, err := ParseReport(log)
	if err != nil {
		return err
	}
	have, err := kernels(cubin)
	if err != nil {
		return err
	}
	var failed []error
	var reported []string
	for _, f := range functions {
		if p := f.Problem(); p != "" {
			failed = append(failed, errors.New(p))
		}
		if f.Entry {
			reported = append(reported, f.Name)
			m.Kernels = append(m.Kernels, lock.Kernel{Name: f.Name, Target: t.Arch, Registers: f.Registers, Shared: f.Shared})
		}
	}
	slices.Sort(reported)
	if !slices.Equal(reported, have) {
		failed = append(failed, fmt.Errorf("the compiler reports on %v, the cubin has %v", reported, have))
	}
	return errors.Join(failed...)
}

// entryFlag marks the symbols of kernels among those of functions.
const entryFlag = 0x10

// kernels lists the kernels of a cubin by name, sorted.
func kernels(cubin []byte) ([]string, error) {
	if len(cubin) < 24 {
		return nil, fmt.Errorf("the cubin has %d bytes", len(cubin))
	}
	// The version field of a cubin's header is CUDA's, not that of the format.
	cubin = bytes.Clone(cubin)
	copy(cubin[20:24], []byte{1, 0, 0, 0})
	f, err := elf.NewFile(bytes.NewReader(cubin))
	if err != nil {
		return nil, fmt.Errorf("the cubin is no ELF file: %w", err)
	}
	symbols, err := f.Symbols()
	if err != nil {
		return nil, fmt.Errorf("symbols of the cubin: %w", err)
	}
	var names []string
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Other&entryFlag != 0 {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}
