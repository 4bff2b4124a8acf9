package goccl

import (
	"fmt"
	"math"
)

// ReduceOp says how elements of different ranks are combined: a kind in the low
// byte and, for PreMulSum, a float32 scale in the upper half. It is one
// comparable word, so it costs no allocation and fits into a fingerprint.
type ReduceOp uint64

// The reductions. Integer Sum and Prod wrap as two's complement. Avg is the sum
// divided once at the end by the number of ranks; integers truncate toward
// zero. Min and Max of floats return NaN when any operand is NaN. f16 and bf16
// are accumulated in float32 within one step and rounded once per step.
const (
	Sum ReduceOp = iota
	Prod
	Min
	Max
	Avg
	preMulSum
)

// PreMulSum sums scale*x over the ranks; each rank may pass another scale. It
// is defined for floats.
func PreMulSum(scale float32) ReduceOp {
	return preMulSum | ReduceOp(math.Float32bits(scale))<<32
}

// Kind returns the operation without its scale: equal on all ranks even when
// their scales differ.
func (o ReduceOp) Kind() ReduceOp { return o & 0xff }

// Valid reports whether o is one of the constants or a PreMulSum.
func (o ReduceOp) Valid() bool {
	return o.Kind() <= preMulSum && (o.Kind() == preMulSum || o == o.Kind())
}

// Scale returns the factor on this rank's input and whether there is one.
func (o ReduceOp) Scale() (float32, bool) {
	if o.Kind() != preMulSum {
		return 1, false
	}
	return math.Float32frombits(uint32(o >> 32)), true
}

var reduceOpNames = [...]string{"sum", "prod", "min", "max", "avg", "premulsum"}

// String returns the name, for example "sum" or "premulsum(0.5)".
func (o ReduceOp) String() string {
	if !o.Valid() {
		return fmt.Sprintf("redop(%#x)", uint64(o))
	}
	if s, ok := o.Scale(); ok {
		return fmt.Sprintf("premulsum(%g)", s)
	}
	return reduceOpNames[o]
}

// ParseReduceOp returns the reduction with the given name: sum prod min max avg.
func ParseReduceOp(name string) (ReduceOp, error) {
	for i, n := range reduceOpNames[:preMulSum] {
		if n == name {
			return ReduceOp(i), nil
		}
	}
	return 0, fmt.Errorf("%w: no reduction is called %q (sum prod min max avg)", ErrInvalid, name)
}

// ReduceOps lists the reductions without a scale, in a fixed order.
func ReduceOps() []ReduceOp { return []ReduceOp{Sum, Prod, Min, Max, Avg} }
