package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/exec/gpu"
)

func TestRanksOnOneGPU(t *testing.T) {
	layout := gpu.DefaultLayout(3, 132)
	all := func(change func(g []greeting)) []greeting {
		g := []greeting{{GPU: "GPU-a", Name: "X", PID: 7, Layout: layout}, {GPU: "GPU-b", Name: "X", PID: 7, Layout: layout}, {GPU: "GPU-c", Name: "X", PID: 8, Layout: layout}}
		change(g)
		return g
	}
	require.NoError(t, check(all(func([]greeting) {})))

	err := check(all(func(g []greeting) { g[1].GPU = "GPU-a" }))
	require.ErrorIs(t, err, goccl.ErrInvalid)
	require.ErrorContains(t, err, "ranks 0 and 1 both use X (GPU-a)")
	require.ErrorContains(t, err, "GOCCL_SHARE_GPU=1")
	require.Error(t, check(all(func(g []greeting) { g[1].GPU, g[1].Share = "GPU-a", true })), "one of them does not want to")
	require.NoError(t, check(all(func(g []greeting) { g[1].GPU, g[1].Share, g[0].Share = "GPU-a", true, true })))

	err = check(all(func(g []greeting) { g[2].GPU, g[2].Share, g[1].Share = "GPU-b", true, true }))
	require.ErrorIs(t, err, goccl.ErrUnsupported)
	require.ErrorContains(t, err, "ranks 1 and 2 share X (GPU-b) from two processes")

	err = check(all(func(g []greeting) { g[2].Layout.Slots *= 2 }))
	require.ErrorIs(t, err, goccl.ErrMismatch)
	require.ErrorContains(t, err, "ranks 0 and 2")
}
