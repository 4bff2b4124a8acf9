package check

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/comm/plan"
)

// TestAnyScheduleSaysTheSame steps ranks and lanes in random orders: what is
// right stays right, and what is wrong is found under every order. It is what
// makes one schedule enough.
func TestAnyScheduleSaysTheSame(t *testing.T) {
	rng := seeded(3)
	run := func(ps []*plan.Program, unit int64, shuffled bool) (Kind, bool) {
		ops := []*operation{newOperation(ps, unit, OutOfPlace), newOperation(ps, unit, OutOfPlace), newOperation(ps, unit, OutOfPlace)}
		w := newWorld(Options{}.filled(), ops, &terms{kids: map[hash]node{}})
		if shuffled {
			w.order = func(n int) []int { return rng.Perm(n) }
		}
		if v, _ := w.prove(); v != nil {
			return v.Kind, false
		}
		return "", ops[0].met
	}
	wrong := 0
	for i, good := range bases(t) {
		for e := range 4 {
			ps := append([]*plan.Program(nil), good...)
			if r := e % len(ps); e > 0 && ps[r] != nil {
				ps[r] = clone(ps[r])
				edit(ps[r], rng)
			}
			if agree(ps) != nil {
				continue
			}
			us := Models(some(ps), Options{})
			unit := us[(i*7+e)%len(us)]
			if newOperation(ps, unit, OutOfPlace).advances(1<<20) != nil {
				continue
			}
			kind, met := run(ps, unit, false)
			if kind != "" {
				wrong++
			}
			for range 4 {
				k, m := run(ps, unit, true)
				require.Equal(t, kind == "", k == "", "%v in order, %v shuffled", kind, k)
				require.Equal(t, met, m)
			}
		}
	}
	require.Greater(t, wrong, 5, "some of the edits must have done harm")
}
