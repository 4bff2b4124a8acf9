package check

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/plan"
)

// edit changes one field of p to another value and says which. The parts of a
// Program are equally likely, then their elements, then the element's fields.
func edit(p *plan.Program, rng *rand.Rand) string {
	parts := []any{&p.Code, &p.Opnds, &p.Exprs, &p.Rows, &p.Conns, &p.Sigs, &p.Lanes, &p.Tables, &p.Geom, &p.Key, p}
	for {
		v := reflect.ValueOf(parts[rng.IntN(len(parts))]).Elem()
		name := v.Type().String()
		if v.Kind() == reflect.Slice {
			if v.Len() == 0 {
				continue
			}
			v = v.Index(rng.IntN(v.Len()))
			name = v.Type().String()
		}
		for v.Kind() != reflect.Bool && !v.CanInt() && !v.CanUint() {
			switch v.Kind() {
			case reflect.Struct:
				i := rng.IntN(v.NumField())
				name += "." + v.Type().Field(i).Name
				v = v.Field(i)
			case reflect.Array, reflect.Slice:
				if v.Len() == 0 {
					v = reflect.Value{}
				} else {
					v = v.Index(rng.IntN(v.Len()))
				}
			}
			// Parts inside the Program are drawn on their own.
			if !v.IsValid() || v.Type() == reflect.TypeFor[plan.Key]() || v.Type() == reflect.TypeFor[plan.Geom]() || v.Kind() == reflect.Slice {
				v = reflect.Value{}
				break
			}
		}
		if v.IsValid() {
			return name + change(v, rng)
		}
	}
}

// change sets a number or a flag to another value near it, small, or with one bit
// flipped.
func change(v reflect.Value, rng *rand.Rand) string {
	if v.Kind() == reflect.Bool {
		v.SetBool(!v.Bool())
		return fmt.Sprintf(" to %v", v.Bool())
	}
	get := func() int64 {
		if v.CanInt() {
			return v.Int()
		}
		return int64(v.Uint())
	}
	old := get()
	for get() == old {
		var x int64
		switch rng.IntN(8) {
		case 0, 1:
			x = old + 1
		case 2, 3:
			x = old - 1
		case 4, 5, 6:
			x = rng.Int64N(9)
		default:
			x = old ^ 1<<rng.IntN(v.Type().Bits())
		}
		if v.CanInt() {
			v.SetInt(x)
		} else {
			v.SetUint(uint64(x))
		}
	}
	return fmt.Sprintf(" from %d to %d", old, get())
}

// bases are the Programs whose edits are tried.
func bases(t testing.TB) [][]*plan.Program {
	var all [][]*plan.Program
	for i, b := range bodies() {
		for _, mapped := range b.mapping() {
			for _, w := range b.windows(mapped) {
				for _, n := range []int{2, 3, 4} {
					k := key(b.coll, b.algo, goccl.LL, 1+(i+n)%2, b.roots(n)[n%len(b.roots(n))], 2)
					k.Window = w
					all = append(all, build(t, k, shape(t, n, 2, mapped)))
				}
			}
		}
	}
	return all
}

// score counts what became of edits.
type score struct {
	edits, equivalent, survived int
	kinds                       map[Kind]int
	traces                      map[*plan.Program]string // of the originals
}

// same reports whether an edited Program does what the original does.
func (s *score) same(original, edited *plan.Program) bool {
	us := sizes(original)
	if _, ok := s.traces[original]; !ok {
		s.traces[original] = trace(original, us)
	}
	return trace(edited, us) == s.traces[original]
}

func (s score) String() string {
	static := s.kinds[Malformed] + s.kinds[Disagreement] + s.kinds[Unmatched]
	return fmt.Sprintf("%d edits: %d caught before running, %d by running, %d equivalent, %d not caught (%.3f %%): %v", s.edits, static,
		s.edits-static-s.equivalent-s.survived, s.equivalent, s.survived, 100*float64(s.survived)/float64(max(s.edits, 1)), s.kinds)
}

// try edits one field of one rank's Program and looks what the checker says.
// What it lets pass must have the same trace. With wellFormed only edits that
// leave the Program well-formed count.
func (s *score) try(t *testing.T, progs []*plan.Program, rng *rand.Rand, wellFormed bool) {
	r := rng.IntN(len(progs))
	for progs[r] == nil {
		r = rng.IntN(len(progs))
	}
	p := clone(progs[r])
	what := edit(p, rng)
	for wellFormed && plan.Validate(p) != nil {
		p = clone(progs[r])
		what = edit(p, rng)
	}
	ps := append([]*plan.Program(nil), progs...)
	ps[r] = p
	s.edits++
	err := Check(ps, Options{MaxSteps: 1 << 20})
	if err == nil {
		err = CheckSequence([][]*plan.Program{ps, ps, ps}, Options{})
	}
	var v *Violation
	switch {
	case errors.As(err, &v):
		s.kinds[v.Kind]++
	case s.same(progs[r], p):
		s.equivalent++
	default:
		s.survived++
		t.Logf("not caught: %v rank %d: %s", progs[r].Key, r, what)
	}
}

// TestMutations edits single fields at random. At least 99 of 100 edits are
// caught, or the edited Program does exactly what the original does; also when
// only edits count that leave the Program well-formed.
func TestMutations(t *testing.T) {
	seed, edits := uint64(1), 3000
	switch {
	case testing.Short():
		edits = 500
	case nightly():
		seed, edits = rand.Uint64(), 60000
	}
	rng := seeded(seed)
	all := bases(t)
	for _, wellFormed := range []bool{false, true} {
		s := score{kinds: map[Kind]int{}, traces: map[*plan.Program]string{}}
		for i := range edits {
			s.try(t, all[i%len(all)], rng, wellFormed)
		}
		t.Logf("seed %d, well-formed only %v: %v", seed, wellFormed, s)
		require.LessOrEqual(t, s.survived*100, s.edits)
		require.Less(t, s.equivalent*2, s.edits, "when most edits do nothing the score means little")
	}
}
