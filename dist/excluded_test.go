package dist_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/dist"
	processgroup "github.com/goccl/goccl/process_group"
)

// C77: a rank that is not in a new group may leave at once; the others form it and
// work on.
func TestC77ExcludedRankLeaves(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	jobs, err := dist.InitLocal(ctx, 4, dist.Config{Timeout: 30 * time.Second})
	require.NoError(t, err)
	var all errgroup.Group
	for r, j := range jobs {
		all.Go(func() error {
			g, err := j.New(ctx, "survivors", []int{0, 1, 2})
			if err != nil {
				return err
			}
			if r == 3 {
				require.Nil(t, g)
				return j.Close()
			}
			for range 3 {
				v := []int64{int64(r + 1), 10 * int64(r)}
				if err := processgroup.AllReduce(ctx, g, v, goccl.Sum); err != nil {
					return err
				}
				require.Equal(t, []int64{6, 30}, v)
			}
			return j.Close()
		})
	}
	require.NoError(t, all.Wait())
}
