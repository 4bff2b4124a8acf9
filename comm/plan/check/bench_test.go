package check

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
)

// BenchmarkCheck is one size of one operation: what a communicator would pay to
// check a Program before its first use.
func BenchmarkCheck(b *testing.B) {
	for _, x := range []struct {
		body
		n int
	}{
		{body{goccl.AllReduce, goccl.OneShot}, 4},
		{body{goccl.AllReduce, goccl.Ring}, 8},
		{body{goccl.AllReduce, goccl.Ring}, 64},
		{body{goccl.AllReduce, goccl.TwoShot}, 64},
		{body{goccl.AllReduce, goccl.Tree}, 64},
	} {
		b.Run(fmt.Sprintf("%v/%d", x.body, x.n), func(b *testing.B) {
			ps := build(b, key(x.coll, x.algo, goccl.LL, 1, 0, 2), shape(b, x.n, 1, false))
			opt := Options{Units: []int64{100}, Aliases: []Alias{OutOfPlace}}
			for b.Loop() {
				require.NoError(b, Check(ps, opt))
			}
		})
	}
}
