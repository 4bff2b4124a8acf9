package nccl_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/device/cuda"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/dist/store"
	"github.com/goccl/goccl/process_group/backend/nccl/libnccl"
)

// TestGPUJob joins a job as a user does: by name, with a device for each rank. The
// split is NCCL's own.
func TestGPUJob(t *testing.T) {
	const n = 2
	library := os.Getenv("GOCCL_TEST_NCCL_LIB")
	drv, err := cuda.Load()
	if err == nil {
		_, err = libnccl.Open(library)
	}
	if err == nil {
		var all []cuda.Info
		if all, err = drv.Devices(); len(all) < n {
			err = errors.Join(err, errors.New("two GPUs are needed"))
		}
	}
	if err != nil {
		require.False(t, slices.Contains(strings.Split(os.Getenv("GOCCL_REQUIRE"), ","), "nccl"), "GOCCL_REQUIRE has nccl: %v", err)
		t.Skip(err)
	}
	shared := store.NewMem()
	defer shared.Close()
	errs := make([]error, n)
	var wg sync.WaitGroup
	for r := range n {
		wg.Go(func() {
			dev, err := drv.Open(r)
			if err != nil {
				errs[r] = err
				return
			}
			cfg := dist.Config{Identity: &dist.Identity{Rank: r, Size: n, LocalRank: r, LocalSize: n}, Store: shared.Share(), Addr: "127.0.0.1:1",
				Backend: "nccl", Device: dev, Options: map[string]string{"nccl.library": library, "nccl.maxCTAs": "8"}, Timeout: time.Minute}
			if library == "" {
				delete(cfg.Options, "nccl.library")
			}
			errs[r] = errors.Join(job(t.Context(), cfg, dev), dev.Close())
		})
	}
	wg.Wait()
	require.Equal(t, make([]error, n), errs)
}

func job(ctx context.Context, cfg dist.Config, dev *cuda.Device) (err error) {
	j, err := dist.Init(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	stream, err := dev.Stream(0)
	if err != nil {
		return err
	}
	defer stream.Close()
	g := j.World()
	if g.Backend() != "nccl" || !strings.HasPrefix(g.Transport(), "NCCL 2.") {
		return fmt.Errorf("the world is on %s, %s", g.Backend(), g.Transport())
	}
	yes, err := g.Agree(ctx, j.Rank() == 1)
	if err != nil || !yes {
		return fmt.Errorf("agreed on %v: %w", yes, err)
	}
	swapped, err := j.Split(ctx, g, 4, -j.Rank())
	if err != nil {
		return err
	}
	alone, err := j.Split(ctx, g, -1+2*j.Rank(), 0) // rank 0 is in none
	if err != nil || (alone == nil) != (j.Rank() == 0) {
		return fmt.Errorf("group %v: %w", alone, err)
	}
	for _, g := range []*dist.Group{g, swapped, alone} {
		if g == nil {
			continue
		}
		m, err := dev.Alloc(8)
		if err != nil {
			return err
		}
		b := device.FromPointer(m.Addr(), 1, goccl.I64, dev.ID(), m)
		err = errors.Join(dev.Write(ctx, m.Addr(), []byte{byte(10 + g.Rank()), 0, 0, 0, 0, 0, 0, 0}), g.On(stream).AllReduce(b, goccl.Sum).Wait(ctx))
		got := make([]byte, 8)
		err = errors.Join(err, dev.Read(ctx, got, m.Addr()), m.Free())
		if want := byte(10*g.Size() + g.Size() - 1); err == nil && got[0] != want {
			err = fmt.Errorf("group %s: %d, want %d", g.Name(), got[0], want)
		}
		if err != nil {
			return err
		}
	}
	return g.Barrier(ctx)
}
