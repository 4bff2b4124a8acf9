package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/cmd/cu2go/nvrtc"
	"github.com/goccl/goccl/internal/cmd/cu2go/toolchain"
)

// library is the path of the compiler. Without it the test is skipped, unless
// GOCCL_REQUIRE has nvrtc: make gen-verify runs these tests so.
func library(t *testing.T) string {
	t.Helper()
	path, err := toolchain.Find("")
	if err != nil {
		require.False(t, slices.Contains(strings.Split(os.Getenv("GOCCL_REQUIRE"), ","), "nvrtc"), "GOCCL_REQUIRE has nvrtc: %v", err)
		t.Skipf("NVRTC is not installed, make gen does that: %v", err)
	}
	return path
}

// folder makes a folder of kernels.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	return dir
}

// tiny has a kernel, a header, and words that would carry a place or a time.
var tiny = map[string]string{
	"tiny.cu": "#include \"sub/n.h\"\nextern \"C\" __global__ void __launch_bounds__(64, 1) add(float *x) { x[threadIdx.x] += N; }\n",
	"sub/n.h": "#define N __LINE__\n",
}

func TestImagesDependOnTheSourcesAlone(t *testing.T) {
	lib := library(t)
	var first map[string][]byte
	for range 2 {
		dir := folder(t, tiny)
		files, err := compile(lib, dir)
		require.NoError(t, err)
		require.Len(t, files, 4)
		for name, b := range files {
			require.False(t, bytes.Contains(b, []byte(dir)), "%s has the folder's name", name)
		}
		if first == nil {
			first = files
		}
		require.Equal(t, first, files)
	}
	require.Contains(t, string(first[lockFile]), "compiler nvrtc "+toolchain.Version+"\n")
	require.Contains(t, string(first[lockFile]), "kernel add sm_90 registers ")
}

func TestGenerateAndVerify(t *testing.T) {
	lib := library(t)
	dir := folder(t, tiny)
	var said bytes.Buffer
	require.ErrorContains(t, verify(lib, dir, &said), "4 files")
	require.NoError(t, generate(lib, dir))
	said.Reset()
	require.NoError(t, verify(lib, dir, &said), said.String())
	require.Contains(t, said.String(), "4 files in ")

	edit := func(name string, fn func([]byte) []byte) {
		b, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), fn(b), 0o644))
	}
	edit("bin/tiny.sm_90.cubin", func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
	edit(lockFile, func(b []byte) []byte { return bytes.Replace(b, []byte("shared 0"), []byte("shared 8"), 1) })
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bin/old.sm_90.cubin"), nil, 0o644))
	require.NoError(t, os.Remove(filepath.Join(dir, "bin/tiny.compute_70.ptx")))
	said.Reset()
	require.ErrorContains(t, verify(lib, dir, &said), "run make gen and commit them")
	require.Contains(t, said.String(), "bin/tiny.sm_90.cubin differs: ")
	require.Contains(t, said.String(), "kernels.lock differs: line ")
	require.Contains(t, said.String(), "bin/old.sm_90.cubin is made from no source")
	require.Contains(t, said.String(), "bin/tiny.compute_70.ptx: ")

	require.NoError(t, generate(lib, dir))
	said.Reset()
	require.NoError(t, verify(lib, dir, &said), said.String())
	_, err := os.Stat(filepath.Join(dir, "bin/old.sm_90.cubin"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestTheCompilersWordsAreUnderstood lets NVRTC itself spill, index an array at run
// time, warn and refuse.
func TestTheCompilersWordsAreUnderstood(t *testing.T) {
	lib := library(t)
	for _, c := range []struct{ src, want string }{
		{`extern "C" __global__ void __launch_bounds__(1024, 2) hungry(float *x) {
			float v[64];
			for (int r = 0; r < 3; r++) {
		#pragma unroll
				for (int i = 0; i < 64; i++) v[i] = x[i * 1024 + threadIdx.x] * (r + v[(i + 1) % 64]);
				__syncthreads();
		#pragma unroll
				for (int i = 0; i < 64; i++) x[i * 512 + threadIdx.x] += v[63 - i];
			}
		}`, "hungry spills registers"},
		{`extern "C" __global__ void wanderer(float *x) {
			float v[32];
			for (int i = 0; i < 32; i++) v[i] = x[i];
			for (int i = 0; i < 32; i++) v[(int)x[i] & 31] += 1;
			x[0] = v[(int)x[32] & 31];
		}`, "wanderer has a stack frame"},
		{`extern "C" __global__ void waster(float *x) { int unused; x[0] = 1; }`, "declared but never referenced"},
		{`__device__ float kept[4]; extern "C" __global__ void k(float *x) { x[0] = kept[threadIdx.x]; }`, "16 bytes of global variables"},
		{`extern "C" __global__ void wrong(float *x) { x = 1.5; }`, "NVRTC_ERROR_COMPILATION"},
	} {
		_, err := compile(lib, folder(t, map[string]string{"x.cu": c.src}))
		require.ErrorContains(t, err, c.want)
		require.ErrorContains(t, err, "x.cu for sm_")
	}
}

func TestOpenRefusesOtherLibraries(t *testing.T) {
	_, err := nvrtc.Open(filepath.Join(t.TempDir(), "libnvrtc.so"))
	require.ErrorContains(t, err, "cannot load")
}

func TestRunNeedsACommand(t *testing.T) {
	for _, args := range [][]string{nil, {"gen"}, {"gen", "."}, {"install", "x"}, {"abi"}, {"paint"}} {
		require.ErrorContains(t, run(args), "usage: cu2go")
	}
}
