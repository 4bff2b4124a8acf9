package nccl

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/comm/bootstrap"
	"github.com/goccl/goccl/device/cuda"
	processgroup "github.com/goccl/goccl/process_group"
	"github.com/goccl/goccl/process_group/backend/nccl/libnccl"
	"github.com/goccl/goccl/process_group/pgtest"
)

// rig is what a TestGPU has: devices with a stream each, and NCCL.
type rig struct {
	library string
	devs    []*cuda.Device
	streams []*cuda.Stream
}

// gpus returns a rig of n devices; 0 stands for all, of which two are needed. It
// skips where they or NCCL are missing, unless GOCCL_REQUIRE has nccl.
func gpus(t *testing.T, n int) *rig {
	t.Helper()
	r := &rig{library: os.Getenv("GOCCL_TEST_NCCL_LIB")}
	drv, err := cuda.Load()
	var all []cuda.Info
	if err == nil {
		all, err = drv.Devices()
	}
	if err == nil && len(all) < max(n, 2) {
		err = errors.New("fewer GPUs than the test needs")
	}
	if err == nil {
		_, err = libnccl.Open(r.library)
	}
	if err != nil {
		require.False(t, slices.Contains(strings.Split(os.Getenv("GOCCL_REQUIRE"), ","), "nccl"), "GOCCL_REQUIRE has nccl: %v", err)
		t.Skip(err)
	}
	if n == 0 {
		n = len(all)
	}
	for i := range n {
		d, err := drv.Open(i)
		require.NoError(t, err)
		s, err := d.Stream(0)
		require.NoError(t, err)
		r.devs, r.streams = append(r.devs, d), append(r.streams, s)
		t.Cleanup(func() {
			require.NoError(t, s.Close())
			require.NoError(t, d.Close())
		})
	}
	return r
}

// root opens a meeting of n ranks for the length of the test.
func root(t *testing.T, n int) bootstrap.UniqueID {
	t.Helper()
	root, err := bootstrap.ListenLocal(bootstrap.RootOptions{Size: n})
	require.NoError(t, err)
	var wg sync.WaitGroup
	wg.Go(func() { _ = root.Serve(context.Background()) })
	t.Cleanup(func() {
		_ = root.Close()
		wg.Wait()
	})
	return root.ID()
}

// groups connects n ranks of this process, each on its device, as views on their
// streams. change, which may be nil, completes the configurations.
func (r *rig) groups(t *testing.T, n int, change func(cfg *Config)) []*processgroup.Group {
	t.Helper()
	id := root(t, n)
	gs, errs := make([]*processgroup.Group, n), make([]error, n)
	each(n, func(rank int) {
		cfg := Config{Rank: rank, Size: n, Name: "g", Device: r.devs[rank], Library: r.library, Timeout: 50 * time.Second}
		if change != nil {
			change(&cfg)
		}
		b, err := New(t.Context(), id, cfg)
		if errs[rank] = err; err == nil {
			gs[rank] = r.group(rank, n, b)
		}
	})
	for _, err := range errs {
		require.NoError(t, err)
	}
	return gs
}

// group makes the group of a backend, as a view on the rank's stream.
func (r *rig) group(rank, n int, b *Backend) *processgroup.Group {
	return processgroup.New(processgroup.Config{Name: "g", Rank: rank, Size: n, Backend: b, Control: b.Control(),
		Timeout: 50 * time.Second}).On(r.streams[rank])
}

// each runs fn for all ranks at once.
func each(n int, fn func(rank int)) {
	var wg sync.WaitGroup
	for rank := range n {
		wg.Go(func() { fn(rank) })
	}
	wg.Wait()
}

func closeAll(t *testing.T, gs []*processgroup.Group) {
	t.Helper()
	errs := make([]error, len(gs))
	each(len(gs), func(rank int) { errs[rank] = gs[rank].Close() })
	require.Equal(t, make([]error, len(gs)), errs)
}

// TestGPUConformance is the row nccl of the suite, with communicators that do not
// block, and the matrix once more for those that do: what an abort cannot end within
// them, the scenarios would leave behind.
func TestGPUConformance(t *testing.T) {
	r := gpus(t, 0)
	options := pgtest.Options{Late: true, Untagged: true}
	for _, d := range r.devs {
		options.Devices = append(options.Devices, d)
	}
	row := func(change func(cfg *Config)) pgtest.Make {
		return func(t *testing.T, n int) []*processgroup.Group { return r.groups(t, n, change) }
	}
	pgtest.RunWith(t, "nccl", options, row(nil))
	options.MatrixOnly, options.Cases = true, 200
	pgtest.RunWith(t, "nccl/blocking", options, row(func(cfg *Config) { cfg.Blocking = true }))
	pgtest.RunWith(t, "nccl/caller", options, row(func(cfg *Config) { cfg.OnCaller = true }))
}
