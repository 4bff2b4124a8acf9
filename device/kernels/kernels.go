// Package kernels is the CUDA kernels, compiled: cubins for the GPUs that are
// common, PTX for the others, embedded. Nothing here calls a driver; whoever has one
// loads an Image and launches as a Launch says.
//
//	image, err := kernels.Load("mlp", 90)     // for the device's compute capability
//	// module := cuModuleLoadData(image.Code)
//	args := abi.MatmulArgs{A: a, B: b, C: c, M: m, N: n, K: k, Alpha: 1}
//	launch, err := kernels.Matmul(&args)
//	// cuLaunchKernel(launch.Kernel, launch.Blocks, launch.Threads, &args)
//
// A program that imports this package carries all images; it reads them when it
// calls Load.
//
// # Sources
//
// A module is a .cu file of this folder. It may include files of this folder and no
// others: the compiler, NVRTC, needs no CUDA headers, and abi/types.h has the
// fixed-width types. What kernels and host share comes from package abi/table.
// After an edit
//
//	make gen
//
// compiles everything; it installs the pinned compiler first, if need be, and needs
// no GPU. kernels.lock records sources, flags, images, and the registers and shared
// memory of each kernel; a test holds it against the files, and make gen-verify compiles
// again and compares. A kernel that spills or has a stack frame is refused.
package kernels

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/goccl/goccl"
)

//go:generate make -C ../.. gen

//go:embed bin
var bin embed.FS

// Image is a module in a form that a GPU, or the driver's compiler, takes.
type Image struct {
	Module string
	Target string // sm_90 for a cubin, compute_70 for PTX
	PTX    bool   // the driver compiles it when it is loaded: tenths of a second, once
	Code   []byte // as cuModuleLoadData wants it: PTX ends in a NUL
}

// Load returns the image of a module, for example "mlp", for a GPU of the given
// compute capability, 90 for 9.0: the newest cubin of the GPU's major version that
// is not newer than the GPU, else the newest PTX. The error wraps
// goccl.ErrUnsupported for a GPU that is too old and goccl.ErrInvalid for a module
// that does not exist. It copies the code.
func Load(module string, computeCap int) (Image, error) {
	images, err := list(module)
	if err != nil {
		return Image{}, err
	}
	best := -1
	for i, m := range images {
		if m.runsOn(computeCap) && (best < 0 || images[best].PTX && !m.PTX || images[best].PTX == m.PTX && m.cap > images[best].cap) {
			best = i
		}
	}
	if best < 0 {
		return Image{}, fmt.Errorf("%w: kernels %q need a GPU of compute capability 7.0 or more, this one has %d.%d",
			goccl.ErrUnsupported, module, computeCap/10, computeCap%10)
	}
	m := images[best]
	code, err := bin.ReadFile("bin/" + m.file)
	if err != nil {
		return Image{}, err
	}
	if m.PTX {
		code = append(code, 0)
	}
	return Image{Module: module, Target: m.Target, PTX: m.PTX, Code: code}, nil
}

// Modules lists the modules that there are, sorted.
func Modules() []string {
	files, err := fs.ReadDir(bin, "bin")
	if err != nil {
		return nil
	}
	var names []string
	for _, f := range files {
		name, _, _ := strings.Cut(f.Name(), ".")
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// file is an embedded file.
type file struct {
	file, Target string
	PTX          bool
	cap          int // 90 for sm_90
}

// runsOn reports whether a GPU takes f. A cubin is for its major version and minor
// versions from its own up.
func (f file) runsOn(computeCap int) bool {
	return computeCap >= f.cap && (f.PTX || computeCap/10 == f.cap/10)
}

// list finds the images of a module: NAME.sm_90.cubin, NAME.compute_70.ptx.
func list(module string) ([]file, error) {
	files, err := fs.ReadDir(bin, "bin")
	if err != nil {
		return nil, err
	}
	var found []file
	for _, f := range files {
		part := strings.Split(f.Name(), ".")
		if len(part) != 3 || part[0] != module {
			continue
		}
		m := file{file: f.Name(), Target: part[1], PTX: part[2] == "ptx"}
		if _, err := fmt.Sscanf(part[1][strings.IndexByte(part[1], '_')+1:], "%d", &m.cap); err != nil {
			return nil, fmt.Errorf("file %s: no target: %w", f.Name(), err)
		}
		found = append(found, m)
	}
	if found == nil {
		return nil, fmt.Errorf("%w: there are no kernels %q; there are %s", goccl.ErrInvalid, module, strings.Join(Modules(), ", "))
	}
	return found, nil
}
