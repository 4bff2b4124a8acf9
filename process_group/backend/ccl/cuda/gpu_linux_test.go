package cuda

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

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/bootstrap"
	"github.com/goccl/goccl/device/cuda"
	processgroup "github.com/goccl/goccl/process_group"
	"github.com/goccl/goccl/process_group/backend/ccl"
	"github.com/goccl/goccl/process_group/pgtest"
)

// rig is what a TestGPU has: a device and a stream for each rank.
type rig struct {
	devs    []*cuda.Device
	streams []*cuda.Stream
	share   bool
}

// gpus returns a rig of ranks on as many GPUs, or all on the first. It skips where
// they are missing, unless GOCCL_REQUIRE has cuda.
func gpus(t *testing.T, ranks int, share bool) *rig {
	t.Helper()
	r := &rig{share: share}
	drv, err := cuda.Load()
	var all []cuda.Info
	if err == nil {
		all, err = drv.Devices()
	}
	if err == nil && len(all) < 1 {
		err = errors.New("no GPU")
	}
	if err != nil {
		require.False(t, slices.Contains(strings.Split(os.Getenv("GOCCL_REQUIRE"), ","), "cuda"), "GOCCL_REQUIRE has cuda: %v", err)
		t.Skip(err)
	}
	if !share && len(all) < ranks {
		t.Skipf("%d GPUs for %d ranks", len(all), ranks)
	}
	for i := range ranks {
		if share {
			i = 0
		}
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

// groups connects n ranks of this process, each as a view on its stream.
func (r *rig) groups(t *testing.T, n int) []*processgroup.Group {
	t.Helper()
	root, err := bootstrap.ListenLocal(bootstrap.RootOptions{Size: n})
	require.NoError(t, err)
	var serving sync.WaitGroup
	serving.Go(func() { _ = root.Serve(context.Background()) })
	t.Cleanup(func() {
		_ = root.Close()
		serving.Wait()
	})
	gs, errs := make([]*processgroup.Group, n), make([]error, n)
	var wg sync.WaitGroup
	for rank := range n {
		wg.Go(func() {
			b, err := ccl.New(t.Context(), root.ID(), ccl.Config{Rank: rank, Size: n, Name: "g", InProcess: true, Device: r.devs[rank],
				ShareDevice: r.share, Timeout: 50 * time.Second})
			if errs[rank] = err; err == nil {
				gs[rank] = processgroup.New(processgroup.Config{Name: "g", Rank: rank, Size: n, Backend: b, Control: b.Control(),
					Timeout: 50 * time.Second}).On(r.streams[rank])
			}
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	return gs
}

// options are those of the row: what the interpreter has so far.
func (r *rig) options() pgtest.Options {
	o := pgtest.Options{Untagged: true, Late: true, Without: map[string]string{}}
	for _, d := range r.devs {
		o.Devices = append(o.Devices, d)
	}
	reducing := []string{"allreduce", "reduce", "reducescatter"}
	lists := []string{"allgather", "alltoallv", "gather", "scatter", "batch", "sendrecv"}
	o.Only = func(form string, d goccl.DType, op goccl.ReduceOp) bool {
		if slices.Contains(lists, form) {
			return false
		}
		sum := op.Kind() == goccl.Sum || op.Kind() == goccl.Avg || op.Kind() == goccl.PreMulSum(1).Kind()
		return !slices.Contains(reducing, form) || sum && (d == goccl.F32 || d == goccl.BF16)
	}
	for _, name := range []string{"Coalesce", "C73CoalesceFails", "C83ManyTransfers", "C71LargeBothWays", "TransferToOneself", "C55ZeroBytes", "C82OneRank"} {
		o.Without[name] = "several transfers as one operation"
	}
	for _, name := range []string{"C65Int8Wraps", "C67BF16Bound"} {
		o.Without[name] = "other types and operations"
	}
	o.Without["NewBuffer"] = "windows in device memory"
	return o
}

func TestGPUConformance(t *testing.T) {
	r := gpus(t, 2, false)
	pgtest.RunWith(t, "cuda", r.options(), r.groups)
}

// Ranks that share a GPU: a machine with one runs this.
func TestGPUShared(t *testing.T) {
	r := gpus(t, 3, true)
	o := r.options()
	o.MatrixOnly, o.Cases = true, 300
	pgtest.RunWith(t, "cuda/shared", o, r.groups)
}

func TestGPURefusesToShare(t *testing.T) {
	r := gpus(t, 2, true)
	r.share = false
	root, err := bootstrap.ListenLocal(bootstrap.RootOptions{Size: 2})
	require.NoError(t, err)
	var serving sync.WaitGroup
	serving.Go(func() { _ = root.Serve(context.Background()) })
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for rank := range errs {
		wg.Go(func() {
			_, errs[rank] = ccl.New(t.Context(), root.ID(), ccl.Config{Rank: rank, Size: 2, InProcess: true, Device: r.devs[rank], Timeout: 50 * time.Second})
		})
	}
	wg.Wait()
	_ = root.Close()
	serving.Wait()
	for _, err := range errs {
		require.ErrorIs(t, err, goccl.ErrInvalid)
		require.ErrorContains(t, err, "GOCCL_SHARE_GPU")
	}
}
