package lock

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func file(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }

func folder() fstest.MapFS {
	return fstest.MapFS{
		"a.cu":           file("#include \"b.h\"\n  #  include \"sub/c.h\" // why\nint a;\n"),
		"b.h":            file("#include \"sub/c.h\"\n"),
		"sub/c.h":        file("#ifdef __CUDACC_RTC__\n#if X\n#include \"gpu.h\"\n#endif\n#else\n#include \"host.h\"\n#endif\n#ifndef __CUDACC_RTC__\n#include <stdio.h>\n#endif\n"),
		"gpu.h":          file("#include \"b.h\"\n"), // a circle
		"bin/a.sm_90.cu": file("x"),
	}
}

func TestClosureFollowsWhatTheCompilerSees(t *testing.T) {
	files, err := Closure(folder(), "a.cu")
	require.NoError(t, err)
	var paths []string
	for _, f := range files {
		paths = append(paths, f.Path)
		require.Equal(t, Sum(folder()[f.Path].Data), f.Sum)
	}
	require.Equal(t, []string{"a.cu", "b.h", "gpu.h", "sub/c.h"}, paths)
}

func TestClosureRefusesWhatItCannotRecord(t *testing.T) {
	for text, want := range map[string]string{
		"#include <cuda.h>\n":                            "a.cu: #include <cuda.h>: only files of this folder",
		"#include \"../x.h\"\n":                          "a.cu: #include \"../x.h\"",
		"#include \"/x.h\"\n":                            "only files of this folder",
		"#include X\n":                                   "a.cu: #include X",
		"#include \"x.h\n":                               "only files of this folder",
		"#include \"none.h\"\n":                          "a.cu: open none.h",
		"#if 0\n#else\n#include \"none.h\"\n#endif\n":    "none.h", // other conditions are not evaluated
		"#endif\n#else\n#include \"none.h\"\n#endif\n":   "none.h",
		"#ifdef A\n#ifdef B\n#else\n#include \"none.h\"": "none.h",
	} {
		_, err := Closure(fstest.MapFS{"a.cu": file(text)}, "a.cu")
		require.ErrorContains(t, err, want, text)
	}
}

func sample() Lock {
	return Lock{Compiler: "nvrtc 1.2.3", Flags: []string{"-a", "--b=c"}, Modules: []Module{
		{Name: "z", Sources: []File{{"z.cu", "05"}}},
		{Name: "a", Sources: []File{{"b.h", "02"}, {"a.cu", "01"}}, Images: []File{{"bin/a.y", "04"}, {"bin/a.x", "03"}},
			Kernels: []Kernel{{"k", "sm_90", 12, 48}, {"k", "sm_80", 8, 0}, {"j", "sm_90", 1, 2}}},
	}}
}

const text = head + `compiler nvrtc 1.2.3
flags -a --b=c

module a
source 01 a.cu
source 02 b.h
kernel j sm_90 registers 1 shared 2
kernel k sm_80 registers 8 shared 0
kernel k sm_90 registers 12 shared 48
image 03 bin/a.x
image 04 bin/a.y

module z
source 05 z.cu
`

func TestTextAndBack(t *testing.T) {
	l := sample()
	l.Sort()
	require.Equal(t, text, string(l.Text()))
	again, err := Parse(l.Text())
	require.NoError(t, err)
	require.Equal(t, l, again)
}

func TestParseNamesTheLine(t *testing.T) {
	for _, line := range []string{"nonsense", "source 01 a.cu", "compiler x", "module", "module a\nsource 01", "module a\nkernel k sm_90 registers x shared 0",
		"module a\nkernel k sm_90 registers 1 shared", "module a\nimage 1 2 3"} {
		_, err := Parse([]byte("# comment\n\n" + line + "\n"))
		require.ErrorContains(t, err, "kernels.lock:", line)
		require.ErrorContains(t, err, "run make gen", line)
	}
}

func TestCheckNamesEveryDifference(t *testing.T) {
	f := fstest.MapFS{"a.cu": file("#include \"b.h\"\n"), "b.h": file("b"), "bin/a.x": file("image")}
	sources, err := Closure(f, "a.cu")
	require.NoError(t, err)
	l := Lock{Modules: []Module{{Name: "a", Sources: sources, Images: []File{{"bin/a.x", Sum([]byte("image"))}}}}}
	bad, err := l.Check(f)
	require.NoError(t, err)
	require.Empty(t, bad)

	f["a.cu"], f["c.h"], f["bin/a.x"], f["bin/a.y"], f["d.cu"] = file("#include \"c.h\"\n"), file("c"), file("other"), file("y"), file("d")
	bad, err = l.Check(f)
	require.NoError(t, err)
	require.Equal(t, []string{
		"bin/a.x is not what was compiled",
		"a.cu changed after a.cu was compiled",
		"a.cu includes b.h no longer",
		"a.cu includes c.h now",
		"d.cu is not in kernels.lock",
		"bin/a.y is not in kernels.lock",
	}, bad)
}
