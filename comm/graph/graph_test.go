package graph

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTreesSpanAndShareInnerRanks(t *testing.T) {
	for n := 1; n <= 200; n++ {
		g, err := New(make([]Place, n))
		require.NoError(t, err)
		inner := make([]int, n)
		for _, tr := range g.Trees {
			roots := 0
			for r := range n {
				require.LessOrEqual(t, len(tr.Children[r]), 2, "n=%d rank %d", n, r)
				for _, c := range tr.Children[r] {
					require.Equal(t, r, tr.Parent[c])
				}
				if len(tr.Children[r]) > 0 {
					inner[r]++
				}
				depth := 0
				for p := r; p != -1; p = tr.Parent[p] {
					depth++
					require.LessOrEqual(t, depth, 10, "n=%d rank %d: too deep or a cycle", n, r)
				}
				if tr.Parent[r] == -1 {
					roots++
				}
			}
			require.Equal(t, 1, roots, "n=%d", n)
		}
		both := 0
		for _, k := range inner {
			if k == 2 {
				both++
			}
		}
		require.LessOrEqual(t, both, 1, "n=%d: ranks inner in both trees", n)
	}
}

func TestRingKeepsHostsTogether(t *testing.T) {
	g, err := New([]Place{{Host: 7}, {Host: 3}, {Host: 7}, {Host: 3}, {Host: 9}})
	require.NoError(t, err)
	require.Equal(t, []int{0, 2, 1, 3, 4}, g.Ring)
	require.False(t, g.Mapped)
}
