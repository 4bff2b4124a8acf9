package build

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/device/kernels/lock"
)

// fake is a compiler that returns a cubin that NVRTC made, and says of its kernels
// what the test wants.
type fake struct {
	cubin   []byte
	kernels []string
	say     func(u Unit, arch, report string) (string, error)

	mu    sync.Mutex
	calls []string
}

var _ Compiler = (*fake)(nil)

func newFake(t *testing.T) *fake {
	t.Helper()
	cubin, err := os.ReadFile("../../../../device/kernels/bin/mlp.sm_90.cubin")
	require.NoError(t, err)
	names, err := kernels(cubin)
	require.NoError(t, err)
	require.Contains(t, names, "matmul_f32")
	require.NotContains(t, names, "", "names of kernels")
	return &fake{cubin: cubin, kernels: names, say: func(_ Unit, _, report string) (string, error) { return report, nil }}
}

func (f *fake) Compile(u Unit, options []string, ptx bool) ([]byte, string, error) {
	arch := strings.TrimPrefix(options[0], "--gpu-architecture=")
	f.mu.Lock()
	f.calls = append(f.calls, u.Name+" "+arch)
	f.mu.Unlock()
	if !slices.Equal(options[1:], Flags) || u.Headers[u.Name] != nil || string(u.Headers["h.h"]) != "shared" {
		return nil, "", fmt.Errorf("called with %v and %d headers", options, len(u.Headers))
	}
	if ptx {
		_, err := f.say(u, arch, "")
		return []byte("//\n// Cuda compilation tools, release 1.2, V1.2.34\n//\n"), "", err
	}
	report := "ptxas info    : 0 bytes gmem\n"
	for i, k := range f.kernels {
		report += fmt.Sprintf("ptxas info    : Compiling entry function '%[1]s' for '%[2]s'\nptxas info    : Function properties for %[1]s\n"+
			"ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\nptxas info    : Used %[3]d registers, used 0 barriers\n", k, arch, 10+i)
	}
	log, err := f.say(u, arch, report)
	return f.cubin, log, err
}

func folder() fstest.MapFS {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	return fstest.MapFS{"b.cu": file("#include \"h.h\"\nb"), "a.cu": file("#include \"h.h\"\na"), "h.h": file("shared"), "other.h": file("x")}
}

func TestBuild(t *testing.T) {
	f := newFake(t)
	out, err := Build(folder(), f)
	require.NoError(t, err)
	slices.Sort(f.calls)
	require.Equal(t, []string{"a.cu compute_70", "a.cu sm_70", "a.cu sm_80", "a.cu sm_90", "b.cu compute_70", "b.cu sm_70", "b.cu sm_80", "b.cu sm_90"}, f.calls)
	require.Len(t, out.Images, 6)
	require.Equal(t, f.cubin, out.Images["bin/b.sm_80.cubin"])
	require.Contains(t, string(out.Images["bin/a.compute_70.ptx"]), "V1.2.34")
	require.Equal(t, "nvrtc 1.2.34", out.Lock.Compiler)
	require.Equal(t, []string{"a", "b"}, []string{out.Lock.Modules[0].Name, out.Lock.Modules[1].Name})
	m := out.Lock.Modules[1]
	require.Equal(t, []lock.File{{Path: "b.cu", Sum: lock.Sum([]byte("#include \"h.h\"\nb"))}, {Path: "h.h", Sum: lock.Sum([]byte("shared"))}}, m.Sources)
	require.Len(t, m.Kernels, 3*len(f.kernels))
	require.Equal(t, lock.Kernel{Name: f.kernels[0], Target: "sm_70", Registers: 10}, m.Kernels[0])
	again, err := Build(folder(), f)
	require.NoError(t, err)
	require.Equal(t, out, again)
}

func TestBuildReportsAllThatIsWrong(t *testing.T) {
	f := newFake(t)
	f.say = func(u Unit, arch, report string) (string, error) {
		switch u.Name + " " + arch {
		case "a.cu sm_80":
			return strings.Replace(report, " 0 bytes spill loads", " 8 bytes spill loads", 1), nil
		case "a.cu sm_70": // a target for which nothing is committed counts too
			return strings.Replace(report, " 0 bytes stack frame", " 24 bytes stack frame", 1), nil
		case "b.cu sm_80":
			return strings.ReplaceAll(report, f.kernels[1], "renamed"), nil
		case "b.cu sm_90":
			return strings.Repeat("a.cu(1): error: no\n", 50), errors.New("refused")
		}
		return report, nil
	}
	_, err := Build(folder(), f)
	require.ErrorContains(t, err, "a.cu for sm_80: "+f.kernels[0]+" spills registers")
	require.ErrorContains(t, err, "a.cu for sm_70: "+f.kernels[0]+" has a stack frame of 24 bytes")
	require.ErrorContains(t, err, "b.cu for sm_80: the compiler reports on")
	require.ErrorContains(t, err, "b.cu for sm_90: refused\na.cu(1): error: no\n")
	require.ErrorContains(t, err, "... and 10 lines more")
	require.NotContains(t, err.Error(), "a.cu for sm_90")
}

func TestBuildNeedsSources(t *testing.T) {
	_, err := Build(fstest.MapFS{"a.h": {}}, newFake(t))
	require.ErrorContains(t, err, "no .cu file")
	_, err = Build(fstest.MapFS{"a.cu": {Data: []byte("#include <x>\n")}}, newFake(t))
	require.ErrorContains(t, err, "a.cu: #include <x>")
}

func TestKernelsOfBrokenCubins(t *testing.T) {
	f := newFake(t)
	for _, n := range []int{0, 10, 30, 100} {
		_, err := kernels(f.cubin[:n])
		require.Error(t, err)
	}
}
