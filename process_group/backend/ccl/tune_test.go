package ccl_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/autotune"
	"github.com/goccl/goccl/comm"
	"github.com/goccl/goccl/process_group/backend/ccl"
)

// TestTuningProfilesMustAgree gives rank 1 another profile than the others.
func TestTuningProfilesMustAgree(t *testing.T) {
	p, err := autotune.DefaultProfile()
	require.NoError(t, err)
	other := *p
	other.Best = []autotune.Best{{Class: "inproc", Coll: "allreduce", Ranks: 3, Log2: 3, Algo: "ring", Proto: "ll", Channels: 1}}
	tuner, err := autotune.New(&other)
	require.NoError(t, err)

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	const n = 3
	root, err := comm.ListenLocal(comm.RootOptions{Size: n})
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- root.Serve(ctx) }()
	errs := make([]error, n)
	var wg sync.WaitGroup
	for r := range n {
		cfg := ccl.Config{Rank: r, Size: n, InProcess: true, Timeout: 50 * time.Second}
		if r == 1 {
			cfg.Tuner = tuner
		}
		wg.Go(func() {
			b, err := ccl.New(ctx, root.ID(), cfg)
			if err == nil {
				err = b.Close()
			}
			errs[r] = err
		})
	}
	wg.Wait()
	_ = root.Close()
	<-served
	for _, err := range errs {
		require.ErrorIs(t, err, goccl.ErrMismatch)
		require.ErrorContains(t, err, "ranks disagree on the tuning profile")
		require.ErrorContains(t, err, tuner.Hash())
	}
}
