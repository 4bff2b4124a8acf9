package kernels

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/dl"
)

// emulator runs the kernels' own sources, compiled for the CPU.
type emulator struct {
	lib      map[string]*dl.Library
	memory   map[uint64][]byte
	backward bool // blocks and threads run last to first
}

var _ machine = (*emulator)(nil)

// compiled is made once; the library stays loaded, its file need not.
var compiled = sync.OnceValues(compileForHost)

// emulators returns the two orders of threads, or skips where there is no compiler.
func emulators(t *testing.T) map[string]machine {
	t.Helper()
	if _, err := exec.LookPath("g++"); err != nil {
		t.Skip("there is no g++ to compile kernels for the CPU")
	}
	lib, err := compiled()
	require.NoError(t, err)
	return map[string]machine{
		"forward":  &emulator{lib: lib, memory: map[uint64][]byte{}},
		"backward": &emulator{lib: lib, memory: map[uint64][]byte{}, backward: true},
	}
}

// declaration finds kernels and the type of their arguments.
var declaration = regexp.MustCompile(`(?m)^KERNEL\(.*\) (\w+)\(const __grid_constant__ (\w+) a\)`)

func compileForHost() (map[string]*dl.Library, error) {
	dir, err := os.MkdirTemp("", "kernels")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	libs := map[string]*dl.Library{}
	for _, module := range []string{elementwise, mlp} {
		src, err := os.ReadFile(module + ".cu")
		if err != nil {
			return nil, err
		}
		text := "#include \"cuda.h\"\n#include \"" + module + ".cu\"\n"
		for _, m := range declaration.FindAllStringSubmatch(string(src), -1) {
			text += fmt.Sprintf("extern \"C\" int host_%[1]s(u32 blocks, u32 threads, u32 backward, const %[2]s *a) {\n"+
				"\treturn host::launch(blocks, threads, backward, [a] { %[1]s(*a); });\n}\n", m[1], m[2])
		}
		cc, so := filepath.Join(dir, module+".cc"), filepath.Join(dir, module+".so")
		if err := os.WriteFile(cc, []byte(text), 0o644); err != nil {
			return nil, err
		}
		out, err := exec.Command("g++", "-std=c++17", "-O1", "-U_FORTIFY_SOURCE", "-ffp-contract=off", "-shared", "-fPIC", "-pthread", "-Wall", "-Wno-unknown-pragmas",
			"-I", ".", "-I", "testdata/host", "-o", so, cc).CombinedOutput()
		if err != nil || len(out) > 0 {
			return nil, fmt.Errorf("g++ %s: %v\n%s", module, err, out)
		}
		if libs[module], err = dl.Open(so); err != nil {
			return nil, err
		}
	}
	return libs, nil
}

func (e *emulator) alloc(t *testing.T, content []byte) uint64 {
	var pin runtime.Pinner
	b := make([]byte, len(content)+16)
	pin.Pin(&b[0])
	t.Cleanup(pin.Unpin)
	b = b[-uintptr(unsafe.Pointer(&b[0]))%16:][:len(content)] // aligned as on a GPU
	copy(b, content)
	addr := uint64(uintptr(unsafe.Pointer(&b[0])))
	e.memory[addr] = b
	return addr
}

func (e *emulator) read(t *testing.T, addr uint64, into []byte) {
	require.Contains(t, e.memory, addr)
	require.Len(t, e.memory[addr], len(into))
	copy(into, e.memory[addr])
}

func (e *emulator) launch(t *testing.T, l Launch, args []byte) {
	t.Helper()
	require.Contains(t, e.lib, l.Module)
	fn, err := e.lib[l.Module].Lookup("host_" + l.Kernel)
	require.NoError(t, err)
	var pin runtime.Pinner
	pin.Pin(&args[0])
	defer pin.Unpin()
	backward := uintptr(0)
	if e.backward {
		backward = 1
	}
	status := fn.Call(uintptr(l.Blocks), uintptr(l.Threads), backward, uintptr(unsafe.Pointer(&args[0])))
	require.Zero(t, dl.Int32(status), "%s: threads wait for others that never come", l.Kernel)
}

func TestEmulated(t *testing.T) {
	for name, m := range emulators(t) {
		t.Run(name, func(t *testing.T) { onMachine(t, m) })
	}
}

// TestEmulatorSeesMistakes breaks a kernel in the ways that the emulator is for.
func TestEmulatorSeesMistakes(t *testing.T) {
	if _, err := exec.LookPath("g++"); err != nil {
		t.Skip("there is no g++")
	}
	const program = `#include "cuda.h"
#include <cstdio>
static int sum[64], base;
static void kernel() {
	__shared__ int x[64];
	x[threadIdx.x] = base + threadIdx.x;
	BARRIER;
	sum[threadIdx.x] = x[63 - threadIdx.x];
}
int main() {
	for (int backward = 0; backward < 2; backward++) {
		base += 100; // shared memory keeps what a launch before left
		int status = host::launch(1, 64, backward, kernel), wrong = 0;
		for (int i = 0; i < 64; i++) wrong += sum[i] != base + 63 - i;
		std::printf("%d %d ", status, wrong > 0);
	}
}`
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.cc"), []byte(program), 0o644))
	for barrier, want := range map[string]string{
		"__syncthreads()":                         "0 0 0 0 ",
		"if (threadIdx.x < 60) __syncthreads()":   "1 1 1 1 ",
		"(void)0":                                 "0 1 0 1 ",
		"if (threadIdx.x) __shfl_sync(~0u, 1, 0)": "1 1 1 1 ",
	} {
		bin := filepath.Join(dir, "a")
		out, err := exec.Command("g++", "-std=c++17", "-pthread", "-I", "testdata/host", "-DBARRIER="+barrier, "-o", bin, filepath.Join(dir, "a.cc")).CombinedOutput()
		require.NoError(t, err, "%s", out)
		out, err = exec.Command(bin).CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Equal(t, want, strings.TrimLeft(string(out), "\n"), barrier)
	}
}
