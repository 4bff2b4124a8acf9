//go:build !race

package nccl

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
)

// A call costs no allocation once its kind is known. The race detector empties the
// pools by which that is so.
func TestGPUAllocations(t *testing.T) {
	r := gpus(t, 2)
	gs := r.groups(t, 1, func(cfg *Config) { cfg.OnCaller = true })
	defer closeAll(t, gs)
	b := floats(t, r.devs[0], 64, mine(0))
	call := func() {
		if err := gs[0].AllReduce(b, goccl.Sum).Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	call()
	require.LessOrEqual(t, testing.AllocsPerRun(200, call), 1.0)
}
