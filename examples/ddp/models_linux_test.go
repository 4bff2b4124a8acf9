package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// envModels says that this process has models instead of a driver and NCCL.
const envModels = "GOCCL_TEST_MODELS"

// kernelOf finds the kernels of a source and the type of their arguments.
var kernelOf = regexp.MustCompile(`(?m)^KERNEL\(.*\) (\w+)\(const __grid_constant__ (\w+) a\)`)

// TestModels runs the tests that need GPUs without one: on models of the driver and of
// NCCL, with the kernels' own sources compiled for the CPU. It is this program again,
// since the dynamic linker looks at its path when a process starts.
func TestModels(t *testing.T) {
	if testing.Short() {
		t.Skip("kernels on the CPU take their time")
	}
	dir := t.TempDir()
	build(t, dir)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=TestGPU", "-test.timeout=9m", "-test.v")
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+dir, "GOCCL_REQUIRE=cuda,nccl", envNCCL+"="+filepath.Join(dir, "libnccl.so.2"),
		"FAKECUDA_KERNELS="+filepath.Join(dir, "kernels.so"), envModels+"=1")
	out, err := cmd.CombinedOutput()
	if testing.Verbose() || err != nil {
		t.Logf("%s", out)
	}
	require.NoError(t, err)
}

// build compiles the models into dir.
func build(t *testing.T, dir string) {
	t.Helper()
	const device, nccl = "../../device/", "../../process_group/backend/nccl/testdata/"
	compile := func(compiler, lib string, args ...string) {
		path, err := exec.LookPath(compiler)
		if err != nil {
			t.Skip("there is no compiler for the models: ", err)
		}
		out, err := exec.Command(path, append([]string{"-shared", "-fPIC", "-o", filepath.Join(dir, lib)}, args...)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	compile("gcc", "libcuda.so.1", "-O1", device+"cuda/testdata/fakecuda.c", "-lpthread", "-ldl")
	compile("gcc", "libnccl.so.2", "-O1", nccl+"fakenccl.c", "-lpthread", "-ldl")
	source := "#include \"cuda.h\"\n"
	for _, module := range []string{"mlp.cu", "elementwise.cu"} {
		text, err := os.ReadFile(device + "kernels/" + module)
		require.NoError(t, err)
		source += "#include \"" + module + "\"\n"
		for _, m := range kernelOf.FindAllStringSubmatch(string(text), -1) {
			source += fmt.Sprintf("extern \"C\" int host_%[1]s(u32 blocks, u32 threads, u32, const %[2]s *a) {\n"+
				"\treturn host::launch(blocks, threads, false, [a] { %[1]s(*a); });\n}\n", m[1], m[2])
		}
	}
	cc := filepath.Join(dir, "kernels.cc")
	require.NoError(t, os.WriteFile(cc, []byte(source), 0o644))
	compile("g++", "kernels.so", "-std=c++17", "-O2", "-march=native", "-ffp-contract=off", "-U_FORTIFY_SOURCE", "-pthread", "-Wno-unknown-pragmas",
		"-I", device+"kernels", "-I", device+"kernels/testdata/host", cc)
}
