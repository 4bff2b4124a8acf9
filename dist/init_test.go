package dist_test

import (
	"context"
	"net"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/dist/store"
)

func TestC27PortInUse(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	go func() { // another program: it takes connections and hangs up
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	addr := l.Addr().String()
	_, err = dist.Init(t.Context(), dist.Config{Identity: &dist.Identity{Rank: 0, Size: 2}, Addr: addr})
	require.ErrorContains(t, err, "goccl: rank 0 (host ")
	require.ErrorContains(t, err, "address "+addr+" in use")
}

func TestC09RankNotBelowWorldSize(t *testing.T) {
	for _, id := range []dist.Identity{{Rank: 2, Size: 2}, {Rank: -1, Size: 2}, {Rank: 0, Size: 0}, {Rank: 0, Size: 2, LocalRank: 3, LocalSize: 2}} {
		_, err := dist.Init(t.Context(), dist.Config{Identity: &id, Addr: "127.0.0.1:1"})
		require.ErrorIs(t, err, goccl.ErrInvalid)
	}
	_, err := dist.Init(t.Context(), dist.Config{Identity: &dist.Identity{Rank: 2, Size: 2}})
	require.ErrorContains(t, err, "rank 2 is not below world size 2")
}

func TestInitRefusesBadConfigs(t *testing.T) {
	for text, cfg := range map[string]dist.Config{
		"a timeout of -1s": {Timeout: -time.Second},
		"MASTER_ADDR":      {Identity: &dist.Identity{Rank: 1, Size: 2}},
	} {
		_, err := dist.Init(t.Context(), cfg)
		require.ErrorIs(t, err, goccl.ErrInvalid)
		require.ErrorContains(t, err, text)
	}
	_, err := dist.InitLocal(t.Context(), 0, dist.Config{})
	require.ErrorIs(t, err, goccl.ErrInvalid)
	_, err = dist.Init(t.Context(), dist.Config{Backend: "none"})
	require.ErrorIs(t, err, goccl.ErrUnsupported)
	require.ErrorContains(t, err, `has no backend called "none"`)
	_, err = dist.Init(t.Context(), dist.Config{Device: gpu{}})
	require.ErrorIs(t, err, goccl.ErrUnsupported)
	require.ErrorContains(t, err, "nothing that runs collectives on cuda:3")
}

// gpu is a device that is not there.
type gpu struct{ device.Device }

func (gpu) ID() device.ID { return device.ID{Kind: device.CUDA, Index: 3} }

func TestInitEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := dist.Init(ctx, dist.Config{Identity: &dist.Identity{Rank: 1, Size: 2}, Addr: "127.0.0.1:1"})
	require.ErrorIs(t, err, goccl.ErrAborted)
	require.ErrorContains(t, err, "rank 1")
}

// ranks joins a job whose ranks have a Config each, as processes do.
func ranks(t *testing.T, n int, config func(r int) dist.Config) {
	t.Helper()
	errs := make([]error, n)
	var wg sync.WaitGroup
	for r := range n {
		wg.Go(func() {
			errs[r] = dist.Run(t.Context(), config(r), func(ctx context.Context, g *dist.Group) error { return exercise(ctx, g, 100) })
		})
	}
	wg.Wait()
	for r, err := range errs {
		require.NoError(t, err, "rank %d", r)
	}
}

func TestInitOverAListener(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ranks(t, 3, func(r int) dist.Config {
		cfg := dist.Config{Identity: &dist.Identity{Rank: r, Size: 3, Addr: l.Addr().String()}, Job: "one"}
		if r == 0 {
			cfg.Listener = l
		}
		return cfg
	})
}

// Two jobs one after the other on one store, and its owner closes it.
func TestInitOverTheCallersStore(t *testing.T) {
	mem := store.NewMem()
	defer mem.Close()
	for _, job := range []string{"first", "second"} {
		ranks(t, 2, func(r int) dist.Config {
			return dist.Config{Identity: &dist.Identity{Rank: r, Size: 2}, Store: mem, Job: job}
		})
	}
}

func TestInitOverAFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files are not shared between handles there")
	}
	path := filepath.Join(t.TempDir(), "store")
	ranks(t, 2, func(r int) dist.Config {
		f, err := store.NewFile(path)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, f.Close()) })
		return dist.Config{Identity: &dist.Identity{Rank: r, Size: 2}, Store: f}
	})
}

func TestC24AnotherJobIsRefused(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() {
		_, err := dist.Init(ctx, dist.Config{Identity: &dist.Identity{Rank: 0, Size: 2}, Addr: l.Addr().String(), Listener: l, Job: "mine"})
		first <- err
	}()
	_, err = dist.Init(t.Context(), dist.Config{Identity: &dist.Identity{Rank: 1, Size: 2}, Addr: l.Addr().String(), Job: "other"})
	require.ErrorIs(t, err, goccl.ErrInvalid)
	require.ErrorContains(t, err, "another job")
	cancel()
	require.Error(t, <-first)
}

func TestCloseTwiceAndFromManyGoroutines(t *testing.T) {
	jobs, err := dist.InitLocal(t.Context(), 2, dist.Config{})
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range 3 {
		for _, j := range jobs {
			wg.Go(func() {
				if err := j.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	require.ErrorIs(t, jobs[0].World().Barrier(t.Context()), goccl.ErrClosed)
	_, err = jobs[0].New(t.Context(), "late", []int{0, 1})
	require.ErrorIs(t, err, goccl.ErrClosed)
}
