package bucket

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/comm"
	"github.com/goccl/goccl/process_group"
	"github.com/goccl/goccl/process_group/backend/ccl"
)

// cclGroups connects n ranks of this process by the library's own engine.
func cclGroups(t *testing.T, n int) []*processgroup.Group {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	root, err := comm.ListenLocal(comm.RootOptions{Size: n})
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- root.Serve(ctx) }()
	t.Cleanup(func() {
		_ = root.Close()
		<-served
		cancel()
	})
	groups, errs := make([]*processgroup.Group, n), make([]error, n)
	var wg sync.WaitGroup
	for r := range n {
		wg.Go(func() {
			b, err := ccl.New(ctx, root.ID(), ccl.Config{Rank: r, Size: n, Name: t.Name(), Timeout: watchdog})
			if err != nil {
				errs[r] = err
				return
			}
			groups[r] = processgroup.New(processgroup.Config{Name: "world", Rank: r, Size: n, Backend: b, Control: b.Control(), Timeout: watchdog})
		})
	}
	wg.Wait()
	for r, err := range errs {
		require.NoError(t, err, "rank %d", r)
	}
	return groups
}

// On the engine, where sums are made in pieces by several ranks: averages are
// right before and after the rebuild, every rank ends with the same bits, and
// overlap does not change them.
func TestOnTheEngine(t *testing.T) {
	const n = 4
	sizes := []int{3000, 7, 1280, 1, 333, 25600, 16, 99, 10}
	cfg := Config{FirstBytes: 400, Bytes: 8000}
	for _, views := range []bool{true, false} {
		t.Run(fmt.Sprintf("views=%v", views), func(t *testing.T) {
			bits := make([][][]float32, n) // of the last step, by rank
			runOn(t, cclGroups(t, n), func(ctx context.Context, g *processgroup.Group) error {
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
