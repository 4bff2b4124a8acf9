package comm_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm"
	"github.com/goccl/goccl/comm/transport"
	"github.com/goccl/goccl/comm/transport/inproc"
	"github.com/goccl/goccl/device"
)

// world makes a communicator of n goroutine ranks that end with the test.
func world(t testing.TB, n int, set func(rank int, cfg *comm.Config)) []*comm.Communicator {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cs, err := comm.InitAll(ctx, n, func(r int, cfg *comm.Config) {
		cfg.Transports = []transport.Transport{inproc.New()}
		cfg.Timeout = 30 * time.Second
		if set != nil {
			set(r, cfg)
		}
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		var wg sync.WaitGroup
		for _, c := range cs {
			wg.Add(1)
			go func() { defer wg.Done(); _ = c.Close() }()
		}
		wg.Wait()
	})
	return cs
}

// each runs fn on every rank at once and returns the errors by rank.
func each(cs []*comm.Communicator, fn func(c *comm.Communicator) error) []error {
	errs := make([]error, len(cs))
	var wg sync.WaitGroup
	for r, c := range cs {
		wg.Add(1)
		go func() { defer wg.Done(); errs[r] = fn(c) }()
	}
	wg.Wait()
	return errs
}

func value(rank, i int) float32 { return float32(rank+1) * float32(i%17+1) }

func TestAllReduceSizes(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5, 8} {
		cs := world(t, n, nil)
		for _, count := range []int{0, 1, 7, 1000, 5000, 100_003, 700_001} {
			t.Run(fmt.Sprintf("n=%d/count=%d", n, count), func(t *testing.T) {
				for _, err := range each(cs, func(c *comm.Communicator) error {
					src, dst := make([]float32, count), make([]float32, count)
					for i := range src {
						src[i] = value(c.Rank(), i)
					}
					ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
					defer cancel()
					if err := c.AllReduce(device.SliceOf(dst), device.SliceOf(src), goccl.Sum).Wait(ctx); err != nil {
						return err
					}
					for i := range dst {
						if want := float32(n*(n+1)/2) * float32(i%17+1); dst[i] != want {
							return fmt.Errorf("element %d: %v, want %v", i, dst[i], want)
						}
					}
					return nil
				}) {
					require.NoError(t, err)
				}
			})
		}
	}
}
