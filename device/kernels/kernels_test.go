package kernels

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device/kernels/abi"
	"github.com/goccl/goccl/device/kernels/lock"
)

func readLock(t *testing.T) lock.Lock {
	t.Helper()
	text, err := os.ReadFile("kernels.lock")
	require.NoError(t, err)
	l, err := lock.Parse(text)
	require.NoError(t, err)
	return l
}

// TestImagesAreOfTheseSources needs no compiler: it fails after an edit of a source
// until make gen has run.
func TestImagesAreOfTheseSources(t *testing.T) {
	bad, err := readLock(t).Check(os.DirFS("."))
	require.NoError(t, err)
	for _, b := range bad {
		t.Errorf("%s: run make gen", b)
	}
}

// TestEditsAreNoticed plays the mistakes that the lock is for.
func TestEditsAreNoticed(t *testing.T) {
	l := readLock(t)
	for _, c := range []struct {
		edit func(fstest.MapFS)
		want string
	}{
		{func(f fstest.MapFS) { f["mlp.cu"].Data = append(f["mlp.cu"].Data, '\n') }, "mlp.cu changed after mlp.cu was compiled"},
		{func(f fstest.MapFS) { f["grid.h"].Data = append(f["grid.h"].Data, ' ') }, "grid.h changed after elementwise.cu was compiled"},
		{func(f fstest.MapFS) { f["bin/mlp.sm_90.cubin"].Data[100] ^= 1 }, "bin/mlp.sm_90.cubin is not what was compiled"},
		{func(f fstest.MapFS) { delete(f, "bin/mlp.sm_80.cubin") }, "bin/mlp.sm_80.cubin: "},
		{func(f fstest.MapFS) { f["bin/old.sm_90.cubin"] = &fstest.MapFile{} }, "bin/old.sm_90.cubin is not in kernels.lock"},
		{func(f fstest.MapFS) { f["new.cu"] = &fstest.MapFile{} }, "new.cu is not in kernels.lock"},
		{func(f fstest.MapFS) { delete(f, "grid.h") }, "includes are relative to the folder of the kernels"},
	} {
		files := fstest.MapFS{}
		for _, m := range l.Modules {
			for _, f := range append(m.Sources, m.Images...) {
				b, err := os.ReadFile(f.Path)
				require.NoError(t, err)
				files[f.Path] = &fstest.MapFile{Data: b}
			}
		}
		bad, err := l.Check(files)
		require.NoError(t, err)
		require.Empty(t, bad)
		c.edit(files)
		bad, err = l.Check(files)
		require.NoError(t, err)
		require.NotEmpty(t, bad, c.want)
		require.Contains(t, bad[0], c.want)
	}
}

func TestLoadChoosesTheFamily(t *testing.T) {
	for _, c := range []struct {
		cap    int
		target string
	}{
		{70, "compute_70"}, {75, "compute_70"}, {80, "sm_80"}, {86, "sm_80"}, {89, "sm_80"}, {90, "sm_90"}, {100, "compute_70"}, {120, "compute_70"},
	} {
		for _, module := range Modules() {
			image, err := Load(module, c.cap)
			require.NoError(t, err)
			require.Equal(t, c.target, image.Target, "%d", c.cap)
			require.Equal(t, module, image.Module)
			require.Equal(t, c.target == "compute_70", image.PTX)
			if image.PTX {
				require.Equal(t, 1, bytes.Count(image.Code, []byte{0}))
				require.Zero(t, image.Code[len(image.Code)-1])
				require.Contains(t, string(image.Code), ".target sm_70\n")
			} else {
				require.Equal(t, "\x7fELF", string(image.Code[:4]))
			}
		}
	}
}

func TestLoadSaysWhyNot(t *testing.T) {
	_, err := Load("mlp", 61)
	require.ErrorIs(t, err, goccl.ErrUnsupported)
	require.ErrorContains(t, err, "7.0 or more, this one has 6.1")
	_, err = Load("mlq", 90)
	require.ErrorIs(t, err, goccl.ErrInvalid)
	require.ErrorContains(t, err, `no kernels "mlq"; there are `+strings.Join(Modules(), ", "))
}

// TestLaunchesNameKernels holds every Launch against the kernels in the lock.
func TestLaunchesNameKernels(t *testing.T) {
	must := func(l Launch, err error) Launch {
		require.NoError(t, err)
		return l
	}
	launches := []Launch{
		FillPattern(&abi.FillArgs{}), must(CheckPattern(&abi.CheckArgs{Ranks: 1})), Compare(&abi.CompareArgs{}), Scale(&abi.ScaleArgs{}),
		Axpy(&abi.AxpyArgs{}), SGD(&abi.SgdArgs{}), must(Matmul(&abi.MatmulArgs{})), must(Bias(&abi.BiasArgs{})),
		must(SmoothReLUGrad(&abi.ReluGradArgs{Knee: 1})), SumRows(&abi.SumRowsArgs{}),
		must(SoftmaxXent(&abi.XentArgs{Classes: 1, Batch: 1})), XentSum(&abi.XentSumArgs{}),
	}
	kernels := map[[2]string]bool{}
	for _, m := range readLock(t).Modules {
		if m.Name != elementwise && m.Name != mlp {
			continue // launched elsewhere
		}
		for _, k := range m.Kernels {
			kernels[[2]string{m.Name, k.Name}] = true
		}
	}
	require.Len(t, launches, len(kernels), "a kernel without a Launch, or the other way round")
	for _, l := range launches {
		require.True(t, kernels[[2]string{l.Module, l.Kernel}], "%+v", l)
		require.EqualValues(t, 1, l.Blocks, "%+v: nothing to do still needs a grid", l)
		require.EqualValues(t, 256, l.Threads)
	}
}

func TestLaunchesRefuseNonsense(t *testing.T) {
	refused := func(_ Launch, err error) { require.ErrorIs(t, err, goccl.ErrInvalid) }
	refused(CheckPattern(&abi.CheckArgs{}))
	refused(CheckPattern(&abi.CheckArgs{Ranks: abi.PatternMaxRanks + 1}))
	refused(Matmul(&abi.MatmulArgs{Flags: 4}))
	refused(Matmul(&abi.MatmulArgs{M: 1 << 31, N: 1 << 31}))
	refused(Bias(&abi.BiasArgs{Knee: -1}))
	refused(SmoothReLUGrad(&abi.ReluGradArgs{}))
	refused(SoftmaxXent(&abi.XentArgs{Batch: 1}))
	refused(SoftmaxXent(&abi.XentArgs{Classes: 1}))
	l, err := Matmul(&abi.MatmulArgs{M: 65, N: 129, K: 1})
	require.NoError(t, err)
	require.EqualValues(t, 6, l.Blocks)
	require.EqualValues(t, maxBlocks, Scale(&abi.ScaleArgs{N: 1 << 40}).Blocks)
	require.EqualValues(t, 2, Scale(&abi.ScaleArgs{N: 257}).Blocks)
}

func TestPattern(t *testing.T) {
	for i := range uint64(3000) {
		require.NotEqual(t, Pattern(0, i), Pattern(0, i+1))
		for r := range uint32(20) {
			require.NotEqual(t, Pattern(r, i), Pattern(r+1, i))
			require.Less(t, Pattern(r, i), float32(abi.PatternRange))
		}
	}
	require.Less(t, float64(PatternSum(0, abi.PatternMaxRanks, 5)), float64(1<<24), "beyond it float32 has no odd numbers")
	require.Equal(t, Pattern(3, 7)+Pattern(4, 7)+Pattern(5, 7), PatternSum(3, 3, 7))
}
