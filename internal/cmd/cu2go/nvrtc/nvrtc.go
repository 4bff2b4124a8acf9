// Package nvrtc compiles CUDA C++ with NVIDIA's runtime compiler, a library that
// needs neither driver nor GPU.
package nvrtc

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"unsafe"

	"github.com/goccl/goccl/internal/dl"
)

// Compiler is the loaded library. It is safe for concurrent use.
type Compiler struct {
	version, errorString           dl.Func
	create, compile, destroy       dl.Func
	logSize, log                   dl.Func
	cubinSize, cubin, ptxSize, ptx dl.Func
	Major, Minor                   int // release of the library
}

// Open loads the library at path.
func Open(path string) (*Compiler, error) {
	lib, err := dl.Open(path)
	if err != nil {
		return nil, err
	}
	c := &Compiler{}
	err = lib.Resolve([]dl.Symbol{
		{Name: "nvrtcVersion", Into: &c.version},
		{Name: "nvrtcGetErrorString", Into: &c.errorString},
		{Name: "nvrtcCreateProgram", Into: &c.create},
		{Name: "nvrtcCompileProgram", Into: &c.compile},
		{Name: "nvrtcDestroyProgram", Into: &c.destroy},
		{Name: "nvrtcGetProgramLogSize", Into: &c.logSize},
		{Name: "nvrtcGetProgramLog", Into: &c.log},
		{Name: "nvrtcGetCUBINSize", Into: &c.cubinSize},
		{Name: "nvrtcGetCUBIN", Into: &c.cubin},
		{Name: "nvrtcGetPTXSize", Into: &c.ptxSize},
		{Name: "nvrtcGetPTX", Into: &c.ptx},
	})
	if err != nil {
		return nil, err
	}
	var major, minor int32
	if err := c.check("nvrtcVersion", c.version.Call(uintptr(unsafe.Pointer(&major)), uintptr(unsafe.Pointer(&minor)))); err != nil {
		return nil, err
	}
	c.Major, c.Minor = int(major), int(minor)
	return c, nil
}

// Source is one program: the text of a file and of every header it includes, by
// the names under which they are included. Nothing is read from disk.
type Source struct {
	Name    string // in messages
	Text    []byte
	Headers map[string][]byte
}

// Compile compiles src with options. It returns a cubin, or PTX with ptx; and
// what the compiler said, which is also there when it refuses. It blocks for tenths
// of a second.
func (c *Compiler) Compile(src Source, options []string, ptx bool) (image []byte, log string, err error) {
	var pins runtime.Pinner // the arrays hold addresses that the call does not see
	defer pins.Unpin()
	var names, texts []uintptr
	for _, name := range slices.Sorted(maps.Keys(src.Headers)) {
		names, texts = append(names, pinned(&pins, name)), append(texts, pinned(&pins, string(src.Headers[name])))
	}
	name, text := dl.CString(src.Name), dl.CString(string(src.Text))
	var program uintptr
	err = c.check("nvrtcCreateProgram", c.create.Call(uintptr(unsafe.Pointer(&program)), uintptr(unsafe.Pointer(&text[0])), uintptr(unsafe.Pointer(&name[0])),
		uintptr(len(names)), uintptr(unsafe.Pointer(unsafe.SliceData(texts))), uintptr(unsafe.Pointer(unsafe.SliceData(names)))))
	if err != nil {
		return nil, "", err
	}
	defer c.destroy.Call(uintptr(unsafe.Pointer(&program)))
	var opts []uintptr
	for _, o := range options {
		opts = append(opts, pinned(&pins, o))
	}
	refused := c.check("nvrtcCompileProgram", c.compile.Call(program, uintptr(len(opts)), uintptr(unsafe.Pointer(unsafe.SliceData(opts)))))
	text, err = c.fetch("nvrtcGetProgramLog", program, c.logSize, c.log)
	log = dl.Text(text)
	switch {
	case refused != nil:
		return nil, log, refused
	case err != nil:
		return nil, log, err
	case ptx:
		image, err = c.fetch("nvrtcGetPTX", program, c.ptxSize, c.ptx)
		return []byte(dl.Text(image)), log, err
	}
	image, err = c.fetch("nvrtcGetCUBIN", program, c.cubinSize, c.cubin)
	return image, log, err
}

// pinned returns the address of s as a C string that stays until pins are let go.
func pinned(pins *runtime.Pinner, s string) uintptr {
	b := dl.CString(s)
	pins.Pin(&b[0])
	return uintptr(unsafe.Pointer(&b[0]))
}

// fetch asks for the size of something and then for its bytes.
func (c *Compiler) fetch(what string, program uintptr, size, get dl.Func) ([]byte, error) {
	var n uintptr
	if err := c.check(what+"Size", size.Call(program, uintptr(unsafe.Pointer(&n)))); err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, fmt.Errorf("%s: nothing there", what)
	}
	b := make([]byte, n)
	return b, c.check(what, get.Call(program, uintptr(unsafe.Pointer(&b[0]))))
}

// check turns the status of a call into an error.
func (c *Compiler) check(call string, status uintptr) error {
	if s := dl.Int32(status); s != 0 {
		return fmt.Errorf("%s: %s (%d)", call, dl.GoString(c.errorString.Call(uintptr(s))), s)
	}
	return nil
}
