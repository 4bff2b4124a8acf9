package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/device/cuda"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/dist/store"
	"github.com/goccl/goccl/examples/ddp/gpu"
	"github.com/goccl/goccl/examples/ddp/model"
	"github.com/goccl/goccl/examples/ddp/options"
	"github.com/goccl/goccl/examples/ddp/train"
	"github.com/goccl/goccl/process_group/backend/nccl/libnccl"
)

// envNCCL names the NCCL of tests on GPUs; empty: the one that the linker finds.
const envNCCL = "GOCCL_TEST_NCCL_LIB"

// needGPUs skips the test on a machine with fewer GPUs, unless GOCCL_REQUIRE has cuda.
func needGPUs(t *testing.T, n int) *cuda.Driver {
	t.Helper()
	drv, all, err := gpus()
	if err == nil && len(all) < n {
		err = fmt.Errorf("there are %d GPUs, %d are needed", len(all), n)
	}
	skipWithout(t, "cuda", err)
	return drv
}

func needNCCL(t *testing.T) {
	t.Helper()
	_, err := libnccl.Open(os.Getenv(envNCCL))
	skipWithout(t, "nccl", err)
}

func skipWithout(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	require.False(t, slices.Contains(strings.Split(os.Getenv("GOCCL_REQUIRE"), ","), what), "GOCCL_REQUIRE has %s: %v", what, err)
	t.Skip(err)
}

// TestGPUModel holds the model of a GPU against that of the CPU: the same parameters to
// begin with, and after the same samples the same loss, gradients, update and guesses,
// but for the order in which float32 sums are taken.
func TestGPUModel(t *testing.T) {
	g, err := gpu.Open(needGPUs(t, 1), 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, g.Close()) }()
	const batch = 20
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	e, err := gpu.NewEngine(ctx, g, batch, 3)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	h, err := train.NewHost(batch, 3)
	require.NoError(t, err)
	require.Equal(t, valuesOf(t, h), valuesOf(t, e), "they begin alike")

	training, testing, err := digits(options.Options{Images: 240})
	require.NoError(t, err)
	cfg := train.Config{Seed: 3, Epochs: 1, Batch: batch, LR: 0.1}
	onCPU, err := train.NewWorker(h, cfg, training, 0, 1)
	require.NoError(t, err)
	onGPU, err := train.NewWorker(e, cfg, training, 0, 1)
	require.NoError(t, err)
	for step := range 3 {
		var orders [2][]int
		for k, w := range []*train.Worker{onCPU, onGPU} {
			require.NoError(t, w.Gradients(step, func() { orders[k] = append(orders[k], -1) }, func(i int) { orders[k] = append(orders[k], i) }))
		}
		require.Equal(t, orders[0], orders[1])
		want, err := onCPU.Loss()
		require.NoError(t, err)
		got, err := onGPU.Loss()
		require.NoError(t, err)
		require.InDelta(t, want, got, 1e-5*want)
		require.NoError(t, e.Stream().Sync(ctx))
		for i, p := range h.Model().Params() {
			compareGradient(t, ctx, g, e, i, p)
		}
		require.NoError(t, errors.Join(onCPU.Update(step), onGPU.Update(step)))
	}
	diff, err := train.Difference(train.Snapshot(valuesOf(t, h)), train.Snapshot(valuesOf(t, e)))
	require.NoError(t, err)
	require.LessOrEqual(t, diff, 1e-6)
	cpuRight, err := onCPU.Correct(testing, 0, 1)
	require.NoError(t, err)
	gpuRight, err := onGPU.Correct(testing, 0, 1)
	require.NoError(t, err)
	require.InDelta(t, cpuRight, gpuRight, 2, "of %d", testing.Len())
}

// compareGradient allows what is lost in sums of a batch, relative to the largest
// element.
func compareGradient(t *testing.T, ctx context.Context, g *gpu.GPU, e *gpu.Engine, i int, p model.Param) {
	t.Helper()
	raw := make([]byte, 4*p.Count())
	require.NoError(t, g.Device().Read(ctx, raw, e.Grad(i).Addr))
	want, got := p.Grad.Float32s(), gpu.Floats(raw)
	var largest, worst float64
	for j, w := range want {
		largest = max(largest, float64(w), -float64(w))
		worst = max(worst, float64(got[j])-float64(w), float64(w)-float64(got[j]))
	}
	require.Positive(t, largest, p.Name)
	require.LessOrEqual(t, worst, 2e-5*largest, p.Name)
}

func valuesOf(t *testing.T, e train.Engine) []train.Value {
	t.Helper()
	v, err := e.Values()
	require.NoError(t, err)
	for i := range v {
		v[i].Shape, v[i].Data = slices.Clone(v[i].Shape), slices.Clone(v[i].Data)
	}
	return v
}

// TestGPUTraining is the whole run on two GPUs, each with a rank, which are goroutines
// here: all checks of the report hold.
func TestGPUTraining(t *testing.T) {
	needGPUs(t, 2)
	needNCCL(t)
	ways := [][]string{{"-images=2400", "-batch=48"}, {"-images=2400", "-batch=48", "-no-overlap"}}
	steps := 50
	if os.Getenv(envModels) != "" && os.Getenv("GOCCL_NIGHTLY") == "" {
		ways, steps = [][]string{{"-images=72", "-batch=24"}}, 3
	} else if os.Getenv(envModels) != "" {
		ways, steps = [][]string{{"-images=240", "-batch=24"}, {"-images=240", "-batch=24", "-no-overlap"}}, 10
	}
	for _, args := range ways {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "result.json")
			o, err := options.Parse(append([]string{"-device=cuda", "-backend=nccl", "-ranks=2", "-epochs=1", "-json=" + path}, args...), os.Stderr)
			require.NoError(t, err)
			shared := store.NewMem()
			defer shared.Close()
			errs := make([]error, o.Ranks)
			var wg sync.WaitGroup
			for r := range errs {
				wg.Go(func() {
					cfg := dist.Config{Identity: &dist.Identity{Rank: r, Size: o.Ranks, LocalRank: r, LocalSize: o.Ranks}, Store: shared.Share(),
						Addr: "127.0.0.1:1", Timeout: timeout}
					if lib := os.Getenv(envNCCL); lib != "" {
						cfg.Options = map[string]string{"nccl.library": lib}
					}
					errs[r] = join(t.Context(), cfg, o, nobody{})
				})
			}
			wg.Wait()
			require.NoError(t, errors.Join(errs...))
			checkGPUResult(t, path, "nccl", steps)
		})
	}
}

// TestGPUProgram is the program as a user runs it, with rank processes.
func TestGPUProgram(t *testing.T) {
	needGPUs(t, 2)
	if os.Getenv(envModels) != "" {
		t.Skip("the models connect ranks of one process only, and run no kernels that wait for each other")
	}
	if lib := os.Getenv(envNCCL); lib != "" {
		t.Setenv("GOCCL_NCCL_LIB", lib)
	}
	for _, backend := range []string{"nccl", "ccl"} {
		t.Run(backend, func(t *testing.T) {
			if backend == "nccl" {
				needNCCL(t)
			}
			path := filepath.Join(t.TempDir(), "result.json")
			cmd := program(t, "-device=cuda", "-backend="+backend, "-ranks=2", "-images=2400", "-epochs=1", "-json="+path)
			finish(t, cmd)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			t.Logf("%s", out)
			checkGPUResult(t, path, backend, 50)
			require.Regexp(t, `parameters +[0-9a-f]{16} on every rank`, string(out))
		})
	}
}

func checkGPUResult(t *testing.T, path, backend string, steps int) {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	var got map[string]any
	require.NoError(t, json.Unmarshal(raw, &got))
	t.Logf("%s", raw)
	require.EqualValues(t, 2, got["ranks"])
	require.EqualValues(t, steps, got["steps"])
	require.NotEmpty(t, got["device"])
	require.Equal(t, backend, got["backend"])
	require.Equal(t, true, got["params_equal"])
	require.Equal(t, true, got["overlap"].(map[string]any)["equal"], "overlap changes no bit")
	require.InDelta(t, 0, got["single_rank_early"], 1e-6)
	require.InDelta(t, 0, got["single_rank_diff"], 1e-5)
	require.NotZero(t, got["loss"])
	buckets := got["buckets"].([]any)
	require.GreaterOrEqual(t, len(buckets), 4)
	for _, b := range buckets {
		b := b.(map[string]any)
		require.LessOrEqual(t, b["ready_ms"], b["launched_ms"])
		require.LessOrEqual(t, b["launched_ms"], b["done_ms"])
	}
}
