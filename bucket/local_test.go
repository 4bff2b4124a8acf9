package bucket

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/process_group"
)

// jobs makes a job of n ranks in this process and returns the world group of
// each. The jobs are closed when the test ends.
func jobs(t *testing.T, n int) []*processgroup.Group {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	js, err := dist.InitLocal(ctx, n, dist.Config{Timeout: watchdog})
	require.NoError(t, err)
	t.Cleanup(func() {
		var wg sync.WaitGroup
		for _, j := range js {
			wg.Go(func() { _ = j.Close() }) // a job that failed says so again
		}
		wg.Wait()
	})
	groups := make([]*processgroup.Group, n)
	for r, j := range js {
		groups[r] = j.World()
	}
	return groups
}

// In a job, where sums are made in pieces by several ranks: averages are
// right before and after the rebuild, every rank ends with the same bits, and
// overlap does not change them.
func TestInALocalJob(t *testing.T) {
	const n = 4
	sizes := []int{3000, 7, 1280, 1, 333, 25600, 16, 99, 10}
	cfg := Config{FirstBytes: 400, Bytes: 8000}
	for _, views := range []bool{true, false} {
		t.Run(fmt.Sprintf("views=%v", views), func(t *testing.T) {
			bits := make([][][]float32, n) // of the last step, by rank
			runOn(t, jobs(t, n), func(ctx context.Context, g *processgroup.Group) error {
				m := newNet(sizes, g.Rank())
				r, err := New(ctx, g, m.params(views), cfg)
				if err != nil {
					return err
				}
				var before [][]float32
				for step, l := range []Layout{Overlap(), Overlap(), Hold()} {
					if err := r.Apply(ctx, l); err != nil {
						return err
					}
					if err := errors.Join(backward(r, m, g.Rank(), 1, shuffled(len(sizes), g.Rank(), step)), r.Finish(ctx), checkAverages(r, m, n, 1)); err != nil {
						return fmt.Errorf("step %d: %w", step, err)
					}
					bits[g.Rank()] = nil
					for i := range sizes {
						bits[g.Rank()] = append(bits[g.Rank()], result(r, m, i))
					}
					if l.kind == layoutHold && !reflect.DeepEqual(before, bits[g.Rank()]) {
						return errors.New("overlap changes bits")
					}
					before = bits[g.Rank()]
				}
				return r.Close()
			})
			for r := range n {
				require.Equal(t, bits[0], bits[r], "rank %d ends with other bits than rank 0", r)
			}
		})
	}
}
