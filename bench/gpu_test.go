package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
)

func TestOptionsOfGPUs(t *testing.T) {
	o, err := parse([]string{"allreduce", "-backend", "nccl", "-vs", "nccl", "-ctas", "8,16", "-graph"})
	require.NoError(t, err)
	require.True(t, o.onGPU())
	require.Equal(t, []int{8, 16}, o.ctas)
	o, err = parse([]string{"allreduce", "-b", "8", "-e", "100"})
	require.NoError(t, err)
	require.False(t, o.onGPU())
	require.EqualValues(t, 64, o.last())
	for want, args := range map[string][]string{
		`no backend is called "gloo"`:  {"-backend", "gloo"},
		`compare with is called "mpi"`: {"-vs", "mpi"},
		`-ctas "0"`:                    {"-ctas", "0"},
		`-ctas "8,x"`:                  {"-ctas", "8,x"},
		"-graph needs":                 {"-graph"},
		"-events needs":                {"-events"},
		"-dump writes host memory":     {"-backend", "nccl", "-dump", "f"},
	} {
		_, err := parse(append([]string{"allreduce"}, args...))
		require.ErrorContains(t, err, want)
	}
}

// A batch is never so short that its begin and end are what is timed.
func TestEnough(t *testing.T) {
	host, gpu, graph := &options{}, &options{gpuOptions: gpuOptions{gpu: true}}, &options{gpuOptions: gpuOptions{gpu: true, graph: true}}
	for _, c := range []struct {
		o    *options
		each time.Duration
		want int
	}{{host, time.Millisecond, 4}, {host, time.Second, 1}, {host, 0, 5000}, {gpu, 100 * time.Microsecond, 200}, {gpu, 10 * time.Millisecond, 20},
		{gpu, time.Microsecond, 1000}, {graph, time.Microsecond, 200}} {
		require.Equal(t, c.want, enough(c.o, c.each), "%v", c)
	}
}

// What is missing is said before any rank starts, with the exit code of something
// that this machine cannot do.
func TestAbsentLibrary(t *testing.T) {
	t.Setenv("GOCCL_NCCL_LIB", "/none/libnccl.so.2")
	o, err := parse([]string{"allreduce", "-backend", "nccl"})
	require.NoError(t, err)
	err = o.absent(o.needed(false))
	require.ErrorIs(t, err, goccl.ErrUnsupported)
	require.ErrorContains(t, err, "cannot load /none/libnccl.so.2")
	require.ErrorContains(t, err, "pip package nvidia-nccl-cu12")
	require.Equal(t, 2, run(t.Context(), []string{"allreduce", "-backend", "nccl"}))
	require.Equal(t, 2, run(t.Context(), []string{"allreduce", "-vs", "nccl"}))
	require.Equal(t, 2, run(t.Context(), []string{"allreduce", "-backend", "nccl", "-threads", "2"}))
	require.Equal(t, []int{1, 2, 3}, []int{o.needed(true), o.needed(false), (&options{threads: 3}).needed(false)})
}

func TestRatio(t *testing.T) {
	low, mid, high := ratio([]float64{2, 4, 6, 8, 10}, []float64{2, 2, 2, 2, 2})
	require.Equal(t, []float64{2, 3, 4}, []float64{low, mid, high})
	low, mid, high = ratio(nil, []float64{1})
	require.Zero(t, low+mid+high)
}

func TestTableOfAComparison(t *testing.T) {
	o, err := parse([]string{"broadcast", "-backend", "nccl", "-vs", "nccl"})
	require.NoError(t, err)
	var out bytes.Buffer
	tab := &table{o: o, w: &out, sides: []*side{{name: "nccl"}, {name: "nccl 32 CTAs"}}}
	r := func(us float64, in bool) *row {
		return &row{Bytes: 1024, Count: 256, DType: "f32", Redop: "none", Root: 0, TimeUS: us, BusBW: 1.5, InPlace: in, batches: []float64{us, us}}
	}
	require.NoError(t, tab.beginVersus(&strings.Builder{}))
	require.NoError(t, tab.rows([]*row{r(8, false), r(4, false)}, []*row{r(9, true), r(3, true)}))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 6)
	require.Contains(t, lines[4], "out  |      8.00    1.50      0  |      4.00    1.50      0  2.00 [2.00 2.00]")
	require.Contains(t, lines[5], "in  |      9.00    1.50      0  |      3.00    1.50      0  3.00 [3.00 3.00]")
	require.Equal(t, 4, tab.n)
	for _, l := range lines[2:] {
		require.Len(t, l, len(lines[4]), "columns stand under each other: %q", l)
	}
}
