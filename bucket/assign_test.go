package bucket

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/internal/golden"
)

// parseItems reads lines "name dtype count [sparse] [frozen] [cuda:N]".
func parseItems(t *testing.T, text string) (names []string, items []item, counts []int) {
	t.Helper()
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		d, err := goccl.ParseDType(f[1])
		require.NoError(t, err)
		n, err := strconv.Atoi(f[2])
		require.NoError(t, err)
		it := item{key: key{dtype: d}, bytes: int64(n * d.Size())}
		for _, w := range f[3:] {
			switch w {
			case "sparse":
				it.sparse = true
			case "frozen":
				it.frozen = true
			case "cuda:0", "cuda:1":
				it.device = device.ID{Kind: device.CUDA, Index: int(w[5] - '0')}
			default:
				t.Fatalf("word %q", w)
			}
		}
		names, items, counts = append(names, f[0]), append(items, it), append(counts, n)
	}
	return names, items, counts
}

func parseLimits(t *testing.T, text string) []int64 {
	t.Helper()
	var out []int64
	for _, w := range strings.Split(text, ",") {
		v, err := strconv.ParseInt(w, 10, 64)
		require.NoError(t, err)
		out = append(out, v)
	}
	return out
}

// TestAssign runs testdata/assign.txt. Commands: "assign LIMITS", "cut BOUNDS"
// and "place LIMITS", each over the parameters below it in reverse order.
func TestAssign(t *testing.T) {
	golden.Script(t, "testdata/assign.txt", func(t *testing.T, c golden.Case) string {
		names, items, counts := parseItems(t, c.Input)
		order := reversed(len(items))
		switch c.Cmd {
		case "assign":
			return describe(names, items, assign(order, items, parseLimits(t, c.Args[0])))
		case "cut":
			var bounds []int
			for _, b := range parseLimits(t, c.Args[0]) {
				bounds = append(bounds, int(b))
			}
			buckets, _, err := Bounds(bounds...).buckets(order, items)
			if err != nil {
				return err.Error()
			}
			return describe(names, items, buckets)
		case "place":
			buckets := assign(order, items, parseLimits(t, c.Args[0]))
			p := place(items, counts, buckets)
			var b strings.Builder
			for a, k := range p.keys {
				fmt.Fprintf(&b, "arena %d: %v on %v, %d elements\n", a, k.dtype, k.device, p.length[a])
			}
			for k, members := range buckets {
				fmt.Fprintf(&b, "bucket %d: arena %d [%d,%d)", k, p.bucket[k].arena, p.bucket[k].from, p.bucket[k].to)
				for _, i := range members {
					fmt.Fprintf(&b, " %s [%d,%d)", names[i], p.param[i].from, p.param[i].to)
				}
				b.WriteByte('\n')
			}
			return b.String()
		}
		t.Fatalf("%s:%d: command %q", c.Path, c.Line, c.Cmd)
		return ""
	})
}

func describe(names []string, items []item, buckets [][]int) string {
	var b strings.Builder
	for k, members := range buckets {
		var bytes int64
		var words []string
		for _, i := range members {
			bytes += items[i].bytes
			words = append(words, names[i])
		}
		fmt.Fprintf(&b, "%d: %s  %d bytes of %v\n", k, strings.Join(words, " "), bytes, items[members[0]].dtype)
	}
	return b.String()
}

func drawItems(t *rapid.T) []item {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) item {
		d := rapid.SampledFrom([]goccl.DType{goccl.F32, goccl.F16, goccl.F64}).Draw(t, "dtype")
		return item{
			key:    key{dtype: d},
			bytes:  int64(rapid.IntRange(0, 40).Draw(t, "n") * d.Size()),
			sparse: rapid.IntRange(0, 9).Draw(t, "sparse") == 0,
			frozen: rapid.IntRange(0, 9).Draw(t, "frozen") == 0,
		}
	}), 0, 30).Draw(t, "items")
}

// TestAssignProperties checks what must hold of every assignment, whatever code
// made it.
func TestAssignProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items := drawItems(t)
		order := rapid.Permutation(reversed(len(items))).Draw(t, "order")
		limits := []int64{rapid.Int64Range(1, 100).Draw(t, "first"), rapid.Int64Range(1, 300).Draw(t, "rest")}
		at := make([]int, len(items))
		for k, i := range order {
			at[i] = k
		}
		seen := make([]bool, len(items))
		closed := map[key]int{} // dense buckets seen of each key
		lastFire := -1
		openBelow := map[key]bool{}
		for _, members := range assign(order, items, limits) {
			require.NotEmpty(t, members)
			require.True(t, slices.IsSortedFunc(members, func(a, b int) int { return at[a] - at[b] }))
			first := items[members[0]]
			var size, beforeLast int64
			for _, i := range members {
				require.False(t, seen[i] || items[i].frozen)
				seen[i] = true
				require.Equal(t, first.key, items[i].key)
				beforeLast = size
				size += items[i].bytes
			}
			fire := at[members[len(members)-1]]
			require.Greater(t, fire, lastFire, "buckets are numbered by when they can fire")
			lastFire = fire
			if first.sparse {
				require.Len(t, members, 1)
				continue
			}
			limit := limits[min(closed[first.key], len(limits)-1)]
			require.False(t, openBelow[first.key], "only the last bucket of a key is below its limit")
			if size < limit {
				openBelow[first.key] = true
			}
			require.True(t, len(members) == 1 || beforeLast < limit, "a bucket closes as soon as it reaches its limit")
			closed[first.key]++
		}
		for i, s := range seen {
			require.Equal(t, !items[i].frozen, s)
		}
	})
}

// Any two layouts of the same parameters need arenas of the same length, and in
// each every gradient has 64 aligned bytes of its own.
func TestPlaceProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items := drawItems(t)
		counts := make([]int, len(items))
		for i, it := range items {
			counts[i] = int(it.bytes) / it.dtype.Size()
		}
		order := rapid.Permutation(reversed(len(items))).Draw(t, "order")
		a := place(items, counts, assign(reversed(len(items)), items, []int64{64, 256}))
		b := place(items, counts, assign(order, items, []int64{100, 90}))
		require.Equal(t, a.keys, b.keys)
		require.Equal(t, a.length, b.length)
		used := make([][]bool, len(b.length))
		for k, n := range b.length {
			used[k] = make([]bool, n)
		}
		for i, it := range items {
			if it.frozen {
				require.Equal(t, -1, b.arena[i])
				continue
			}
			s := b.param[i]
			require.Equal(t, counts[i], s.to-s.from)
			require.Zero(t, s.from*it.dtype.Size()%alignBytes)
			for e := s.from; e < s.to; e++ {
				require.False(t, used[b.arena[i]][e])
				used[b.arena[i]][e] = true
			}
		}
	})
}
