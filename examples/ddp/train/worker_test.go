package train

import (
	"flag"
	"iter"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/examples/ddp/mnist"
	"github.com/goccl/goccl/examples/ddp/model"
	"github.com/goccl/goccl/examples/ddp/options"
)

var seeds = flag.Int("seeds", 0, "train with the default flags and this many seeds, from 0 on")

// virtual is ranks that run one after another in this goroutine and average their
// gradients as an AllReduce would.
type virtual []*Worker

func newVirtual(t *testing.T, cfg Config, set *mnist.Set, size int) virtual {
	t.Helper()
	v := make(virtual, size)
	for rank := range v {
		v[rank] = newWorker(engine(t, cfg, size), cfg, set, digits().scaler, rank, size)
	}
	return v
}

func engine(t *testing.T, cfg Config, size int) *Host {
	t.Helper()
	h, err := NewHost(cfg.Batch/size, cfg.Seed)
	require.NoError(t, err)
	return h
}

// modelOf is the model of w, which is on the CPU.
func modelOf(w *Worker) *model.MLP { return w.engine.(*Host).Model() }

func valuesOf(t *testing.T, w *Worker) []Value {
	t.Helper()
	v, err := w.Values()
	require.NoError(t, err)
	return v
}

// step does one step on every rank and returns the mean loss.
func (v virtual) step(t *testing.T, step int) float64 {
	t.Helper()
	var loss float64
	for _, w := range v {
		require.NoError(t, w.Gradients(step, nil, nil))
		l, err := w.Loss()
		require.NoError(t, err)
		loss += l / float64(len(v))
	}
	for i, p := range modelOf(v[0]).Params() {
		sum := p.Grad.Float32s()
		for _, w := range v[1:] {
			for j, g := range modelOf(w).Params()[i].Grad.Float32s() {
				sum[j] += g
			}
		}
		for j := range sum {
			sum[j] /= float32(len(v))
		}
		for _, w := range v[1:] {
			copy(modelOf(w).Params()[i].Grad.Float32s(), sum)
		}
	}
	for _, w := range v {
		require.NoError(t, w.Update(step))
	}
	return loss
}

func (v virtual) snapshot(t *testing.T) []float32 { return Snapshot(valuesOf(t, v[0])) }

// digits are unpacked, and their scaler made, once for all tests: both are read-only.
var digits = sync.OnceValue(func() (d struct {
	train, test *mnist.Set
	scaler      *Scaler
	err         error
}) {
	if d.train, d.test, d.err = mnist.Load(); d.err == nil {
		d.scaler = NewScaler(d.train)
	}
	return d
})

func load(t *testing.T) (train, test *mnist.Set) {
	t.Helper()
	d := digits()
	require.NoError(t, d.err)
	return d.train, d.test
}

// TestRanksAgainstOne: four ranks end up where one rank with the same global batch
// does, but for the order of float32 sums.
func TestRanksAgainstOne(t *testing.T) {
	train, _ := load(t)
	cfg := Config{Seed: 0, Epochs: 1, Batch: 48, LR: 0.05}
	four, one := newVirtual(t, cfg, train, 4), newVirtual(t, cfg, train, 1)
	start, err := Difference(four.snapshot(t), one.snapshot(t))
	require.NoError(t, err)
	require.Zero(t, start)
	before := one.snapshot(t)
	steps := 20
	if testing.Short() {
		steps = 5
	}
	for step := range steps {
		require.InDelta(t, one.step(t, step), four.step(t, step), 1e-5)
	}
	diff, err := Difference(four.snapshot(t), one.snapshot(t))
	require.NoError(t, err)
	require.LessOrEqual(t, diff, 1e-6)
	moved, err := Difference(before, one.snapshot(t))
	require.NoError(t, err)
	require.Greater(t, moved, 1e-3, "training must have moved the parameters")
	for _, w := range four[1:] {
		require.Equal(t, Hash(valuesOf(t, four[0])), Hash(valuesOf(t, w)))
	}
}

// TestDefaultRun trains as the example does without flags, on one rank in this
// process. That takes several seconds a seed, so it runs only when asked to.
func TestDefaultRun(t *testing.T) {
	if *seeds == 0 {
		t.Skip("pass -seeds 6 to train with the default flags and seeds 0 to 5")
	}
	train, test := load(t)
	o := options.Default()
	for seed := range *seeds {
		cfg := Config{Seed: uint64(seed), Epochs: o.Epochs, Batch: o.Batch, LR: o.LR}
		one := newVirtual(t, cfg, train, 1)
		for step := range one[0].Steps() {
			one.step(t, step)
		}
		right, err := one[0].Correct(test, 0, 1)
		require.NoError(t, err)
		accuracy := float64(right) / float64(test.Len())
		t.Logf("seed %d: accuracy %.2f %%", seed, 100*accuracy)
		require.GreaterOrEqual(t, accuracy, 0.96)
	}
}

func TestAccuracy(t *testing.T) {
	if testing.Short() {
		t.Skip("trains for some seconds")
	}
	train, test := load(t)
	cfg := Config{Seed: 1, Epochs: 1, Batch: 160, LR: 0.1}
	w, err := NewWorker(engine(t, cfg, 1), cfg, train, 0, 1)
	require.NoError(t, err)
	for step := range 50 {
		require.NoError(t, w.Gradients(step, nil, nil))
		require.NoError(t, w.Update(step))
	}
	right := 0
	for rank := range 3 { // the ranks' shares cover the set
		n, err := w.Correct(test, rank, 3)
		require.NoError(t, err)
		right += n
	}
	require.GreaterOrEqual(t, right, test.Len()*85/100)
	count := func(rank, size int) int {
		n, err := w.Correct(test, rank, size)
		require.NoError(t, err)
		return n
	}
	require.Equal(t, count(7, 30), count(7, 60)+count(37, 60))
}

// TestGradientsRepeat: computing a step again gives the same gradients, so a step
// can be timed twice.
func TestGradientsRepeat(t *testing.T) {
	train, _ := load(t)
	cfg := Config{Epochs: 2, Batch: 12000, LR: 0.1}
	w := newWorker(engine(t, cfg, 120), cfg, train, digits().scaler, 1, 120)
	require.Equal(t, 4, w.Steps())
	run := func(step int) ([]float32, []int) {
		var order []int
		started := false
		require.NoError(t, w.Gradients(step, func() { started = true }, func(i int) {
			require.True(t, started)
			order = append(order, i)
		}))
		return append([]float32(nil), modelOf(w).Params()[0].Grad.Float32s()...), order
	}
	first, order := run(3)
	require.Equal(t, []int{9, 8, 7, 6, 5, 4, 3, 2, 1, 0}, order)
	other, _ := run(0)
	require.NotEqual(t, first, other)
	again, _ := run(3)
	require.Equal(t, first, again)
}

func TestWorkerRefuses(t *testing.T) {
	train, _ := load(t)
	eight := engine(t, Config{Batch: 8}, 1)
	for want, tc := range map[string]struct {
		cfg        Config
		rank, size int
	}{
		"train: rank 2 of 2":                          {Config{Epochs: 1, Batch: 8}, 2, 2},
		"train: batch 0 of 24000 samples":             {Config{Epochs: 1}, 0, 1},
		"train: batch 8 is not a multiple of 3 ranks": {Config{Epochs: 1, Batch: 8}, 0, 3},
		"train: 0 epochs":                             {Config{Batch: 8}, 0, 1},
	} {
		_, err := NewWorker(eight, tc.cfg, train, tc.rank, tc.size)
		require.EqualError(t, err, want)
	}
	_, err := NewWorker(eight, Config{Epochs: 1, Batch: 8}, train, 0, 2)
	require.EqualError(t, err, "train: an engine for 8 samples, 4 are a rank's share")
	w, err := NewWorker(eight, Config{Epochs: 1, Batch: 8}, train, 0, 1)
	require.NoError(t, err)
	require.EqualError(t, w.Gradients(3000, nil, nil), "train: step 3000 of 3000")
	w.UseShard(func(int, uint64, int) iter.Seq[int] { return func(yield func(int) bool) { yield(24000) } })
	require.EqualError(t, w.Gradients(0, nil, nil), "train: the shard has sample 24000 of 24000")
	w.UseShard(func(int, uint64, int) iter.Seq[int] { return func(yield func(int) bool) { yield(5) } })
	require.EqualError(t, w.Gradients(0, nil, nil), "train: the shard has 1 samples, an epoch needs 24000")
}
