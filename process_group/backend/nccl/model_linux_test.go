package nccl

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestModels runs the tests that need GPUs on models of the driver and of NCCL:
// two devices whose memory is the host's, and a library that queues, connects,
// hangs and refuses as NCCL does. It is this program again, since the dynamic
// linker looks at its path when a process starts.
func TestModels(t *testing.T) {
	if os.Getenv("GOCCL_TEST_NCCL_LIB") != "" {
		t.Skip("this run has an NCCL of its own")
	}
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no C compiler to build the models")
	}
	dir := t.TempDir()
	for source, lib := range map[string]string{"../../../device/cuda/testdata/fakecuda.c": "libcuda.so.1", "testdata/fakenccl.c": "libnccl.so.2"} {
		out, err := exec.Command(gcc, "-shared", "-fPIC", "-O1", "-o", filepath.Join(dir, lib), source, "-lpthread", "-ldl").CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	args := []string{"-test.run=TestGPU", "-test.timeout=9m"}
	if testing.Short() {
		args = append(args, "-test.short")
	}
	if testing.Verbose() {
		args = append(args, "-test.v")
	}
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+dir, "GOCCL_REQUIRE=nccl", "GOCCL_TEST_NCCL_LIB="+filepath.Join(dir, "libnccl.so.2"), "GOCCL_TEST_MODELS=1")
	out, err := cmd.CombinedOutput()
	if testing.Verbose() || err != nil {
		t.Logf("%s", out)
	}
	require.NoError(t, err)
}
