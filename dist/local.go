package dist

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm"
	"github.com/goccl/goccl/comm/bootstrap"
	"github.com/goccl/goccl/dist/store"
)

// InitLocal makes a job of n ranks in this process, without a socket, and returns
// its ends by rank. Each is used by a goroutine of its own and closed as if it
// were alone in its process. Identity, Addr and Listener of cfg are not used.
func InitLocal(ctx context.Context, n int, cfg Config) ([]*Job, error) {
	if n < 1 {
		return nil, fmt.Errorf("goccl: init: %w: %d ranks; at least 1 is needed", goccl.ErrInvalid, n)
	}
	cfg.Addr, cfg.Listener, cfg.inherit = "", nil, nil
	hub := store.NewMem()
	jobs, errs := make([]*Job, n), make([]error, n)
	var wg sync.WaitGroup
	for r := range n {
		wg.Go(func() { jobs[r], errs[r] = initLocal(ctx, r, n, cfg, hub) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		for _, j := range jobs {
			if j != nil {
				wg.Go(func() { j.closeQuietly() })
			}
		}
		wg.Wait()
		return nil, err
	}
	return jobs, nil
}

func initLocal(ctx context.Context, r, n int, cfg Config, hub *store.Mem) (*Job, error) {
	cfg.Identity = &Identity{Rank: r, Size: n, LocalRank: r, LocalSize: n, Source: "caller"}
	if err := cfg.fill(); err != nil {
		return nil, fmt.Errorf("goccl: init: %w", err)
	}
	j := newJob(cfg)
	j.local = true
	j.open = func(_ context.Context, opt bootstrap.RootOptions) (*comm.Root, error) { return comm.ListenLocal(opt) }
	if cfg.Store != nil {
		j.store = store.Prefix(cfg.Store, "goccl/"+cfg.Job+"/")
	} else {
		own := hub.Share()
		j.store, j.end = own, func(context.Context) error { return own.Close() }
	}
	return j.enter(ctx)
}
