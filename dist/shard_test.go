package dist

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestShardCoversAllOnce(t *testing.T) {
	for _, n := range []int{0, 1, 5, 12, 100, 101} {
		for _, size := range []int{1, 2, 3, 8} {
			seen, per := map[int]int{}, -1
			for r := range size {
				got := slices.Collect(shard(n, r, size, 7, 3))
				if per < 0 {
					per = len(got)
				}
				require.Len(t, got, per, "all ranks make the same number of steps: n %d size %d", n, size)
				for _, i := range got {
					seen[i]++
				}
			}
			require.Len(t, seen, n)
			require.Equal(t, (n+size-1)/size, per)
			twice := 0
			for i, k := range seen {
				require.Less(t, i, n)
				twice += k - 1
			}
			require.Equal(t, per*size-n, twice, "only what fills up comes again: n %d size %d", n, size)
		}
	}
}

// What all ranks take together does not depend on how many they are.
func TestShardOrderIsThatOfOneRank(t *testing.T) {
	one := slices.Collect(shard(60, 0, 1, 1, 2))
	require.False(t, slices.IsSorted(one))
	for _, size := range []int{2, 3, 4} {
		parts := make([][]int, size)
		for r := range size {
			parts[r] = slices.Collect(shard(60, r, size, 1, 2))
		}
		for i, x := range one {
			require.Equal(t, x, parts[i%size][i/size])
		}
	}
}

func TestShardDependsOnSeedAndEpoch(t *testing.T) {
	a := slices.Collect(shard(50, 0, 1, 1, 0))
	require.Equal(t, a, slices.Collect(shard(50, 0, 1, 1, 0)))
	require.NotEqual(t, a, slices.Collect(shard(50, 0, 1, 2, 0)))
	require.NotEqual(t, a, slices.Collect(shard(50, 0, 1, 1, 1)))
}

func TestShardStopsWhenAsked(t *testing.T) {
	n := 0
	for range shard(10, 0, 1, 1, 1) {
		if n++; n == 3 {
			break
		}
	}
	require.Equal(t, 3, n)
}
