package dist

import (
	"context"
	"errors"
	"runtime"
	"sync"

	"github.com/goccl/goccl/dist/store"
)

// Goexit ends the calling goroutine.
func Goexit() { runtime.Goexit() }

// InitRanks is InitLocal with a Config that may differ between ranks.
func InitRanks(ctx context.Context, n int, cfg Config, configure func(rank int, c *Config)) ([]*Job, error) {
	hub := store.NewMem()
	jobs, errs := make([]*Job, n), make([]error, n)
	var wg sync.WaitGroup
	for r := range n {
		wg.Go(func() {
			c := cfg
			configure(r, &c)
			jobs[r], errs[r] = initLocal(ctx, r, n, c, hub)
		})
	}
	wg.Wait()
	return jobs, errors.Join(errs...)
}
