package bucket

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/process_group"
	"github.com/goccl/goccl/process_group/backend/fake"
)

// watchdog ends a test that hangs; it measures nothing.
const watchdog = 60 * time.Second

// runRanks runs fn for each rank of a new group of n, on goroutines, and returns
// their errors by rank. The group moves data by the plainest engine that is right.
func runRanks(t *testing.T, n int, cfg processgroup.Config, fn func(ctx context.Context, g *processgroup.Group) error) []error {
	t.Helper()
	return runGroups(t, fake.Groups(n, cfg), fn)
}

func runGroups(t *testing.T, groups []*processgroup.Group, fn func(ctx context.Context, g *processgroup.Group) error) []error {
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	errs := make([]error, len(groups))
	var wg sync.WaitGroup
	for r, g := range groups {
		wg.Go(func() { errs[r] = fn(ctx, g) })
	}
	wg.Wait()
	for _, g := range groups {
		wg.Go(func() { _ = g.Close() }) // a group that failed says so again
	}
	wg.Wait()
	return errs
}

// onRanks is runRanks for what must succeed on all.
func onRanks(t *testing.T, n int, fn func(ctx context.Context, g *processgroup.Group) error) {
	t.Helper()
	runOn(t, fake.Groups(n, processgroup.Config{}), fn)
}

// runOn runs fn, which must succeed, on the ranks of given groups and closes them.
func runOn(t *testing.T, groups []*processgroup.Group, fn func(ctx context.Context, g *processgroup.Group) error) {
	t.Helper()
	for r, err := range runGroups(t, groups, fn) {
		require.NoError(t, err, "rank %d", r)
	}
}

// net is a model of plain tensors for tests: forward order, sizes that do not fit
// any alignment.
type net struct {
	sizes []int
	value [][]float32
	grad  [][]float32
}

// sizes of the model in most tests: 9 parameters of 1 to 300 elements.
var sizes = []int{300, 7, 128, 1, 33, 256, 16, 99, 10}

func newNet(sizes []int, rank int) *net {
	m := &net{sizes: sizes}
	for i, n := range sizes {
		v := make([]float32, n)
		for e := range v {
			v[e] = float32(1000*rank + 10*i + e)
		}
		m.value, m.grad = append(m.value, v), append(m.grad, make([]float32, n))
	}
	return m
}

// params describes the model; with views gradients live in the buckets.
func (m *net) params(views bool) []Param {
	ps := make([]Param, len(m.sizes))
	for i := range ps {
		ps[i] = Param{Name: fmt.Sprintf("layer%d.weight", i), Value: device.SliceOf(m.value[i])}
		if !views {
			ps[i].Grad = device.SliceOf(m.grad[i])
		}
	}
	return ps
}

// gradient is what rank computes for element e of parameter i in a step: other
// for each, and not exact in binary, so that the order of sums shows.
func gradient(rank, step, i, e int) float32 {
	return float32(rank+1)*0.1 + float32(step)*0.01 + float32(i)*1.3 + float32(e)/7
}

// fillGrad writes gradient i where the reducer expects it.
func fillGrad(r *Reducer, m *net, rank, step, i int) {
	for e := range m.grad[i] {
		m.grad[i][e] = gradient(rank, step, i, e)
	}
	if r.params[i].inView {
		copyHost(r.View(i), device.SliceOf(m.grad[i]))
	}
}

// result returns the averaged gradient i as a slice of its own.
func result(r *Reducer, m *net, i int) []float32 {
	out := make([]float32, len(m.grad[i]))
	src := device.SliceOf(m.grad[i])
	if r.params[i].inView {
		src = r.View(i)
	}
	copyHost(device.SliceOf(out), src)
	return out
}

// average is what the reducer must give, from the definition.
func average(ranks, step, i, e int) float32 {
	var sum float64
	for r := range ranks {
		sum += float64(gradient(r, step, i, e))
	}
	return float32(sum / float64(ranks))
}

// backward announces all gradients in the given order.
func backward(r *Reducer, m *net, rank, step int, order []int) error {
	for _, i := range order {
		fillGrad(r, m, rank, step, i)
		if err := r.Ready(i); err != nil {
			return err
		}
	}
	return nil
}

// checkAverages compares all gradients with the definition.
func checkAverages(r *Reducer, m *net, ranks, step int) error {
	for i := range m.sizes {
		for e, got := range result(r, m, i) {
			want := average(ranks, step, i, e)
			if d := got - want; d > 1e-5*want || d < -1e-5*want {
				return fmt.Errorf("step %d, parameter %d, element %d: %v, want %v", step, i, e, got, want)
			}
		}
	}
	return nil
}

// shuffled is an order of n parameters that depends on rank and step only.
func shuffled(n, rank, step int) []int {
	return rand.New(rand.NewPCG(uint64(rank), uint64(step))).Perm(n)
}
