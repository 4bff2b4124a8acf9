package bucket

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/process_group"
	"github.com/goccl/goccl/process_group/backend/fake"
)

// A step allocates nothing: neither Ready, which starts operations here, nor
// Finish, whether gradients are copied or live in the buckets.
func TestStepAllocatesNothing(t *testing.T) {
	for _, views := range []bool{true, false} {
		g := processgroup.New(processgroup.Config{Name: "world", Size: 1, Backend: fake.Immediate()})
		m := newNet(sizes, 0)
		r, err := New(t.Context(), g, m.params(views), small)
		require.NoError(t, err)
		ctx := t.Context()
		step := func() {
			for i := len(sizes) - 1; i >= 0; i-- {
				if r.Ready(i) != nil {
					t.Fail()
				}
			}
			if r.Finish(ctx) != nil {
				t.Fail()
			}
		}
		step()
		require.Zero(t, testing.AllocsPerRun(50, step), "views %v", views)
		require.NoError(t, r.Close())
		require.NoError(t, g.Close())
	}
}
