package build

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/goccl/goccl/device/kernels/lock"
)

// Unit is one file to compile, with the text of all it includes.
type Unit struct {
	Name    string
	Text    []byte
	Headers map[string][]byte
}

// Compiler compiles a Unit and returns the image and what the compiler said, which
// is also there with an error.
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
	out := Output{Images: map[string][]byte{}, Lock: lock.Lock{Flags: Flags}}
	var failed []error
	for _, name := range names {
		if err := out.add(fsys, name, c); err != nil {
			failed = append(failed, err)
		}
	}
	out.Lock.Sort()
	return out, errors.Join(failed...)
}

func (o *Output) add(fsys fs.FS, name string, c Compiler) error {
	texts, err := lock.Texts(fsys, name)
	if err != nil {
		return err
	}
	sources, err := lock.Closure(fsys, name)
	if err != nil {
		return err
	}
	u := Unit{Name: name, Text: texts[name], Headers: maps.Clone(texts)}
	delete(u.Headers, name)
	m := lock.Module{Name: strings.TrimSuffix(name, ".cu"), Sources: sources}
	var failed []error
	for _, t := range Targets {
		image, log, err := c.Compile(u, t.Options(), t.PTX)
		if err != nil {
			return fmt.Errorf("%s for %s: %w\n%s", name, t.Arch, err, log) // other targets would say the same
		}
		if t.PTX {
			err = o.version(image)
		} else {
			err = report(&m, t, image, log)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s for %s: %w", name, t.Arch, err))
		}
		if t.Ext != "" {
			file := path.Join("bin", m.Name+"."+t.Ext)
			o.Images[file] = image
			m.Images = append(m.Images, lock.File{Path: file, Sum: lock.Sum(image)})
		}
	}
	o.Lock.Modules = append(o.Lock.Modules, m)
	return errors.Join(failed...)
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
