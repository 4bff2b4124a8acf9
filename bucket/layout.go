package bucket

import (
	"fmt"
	"slices"

	"github.com/goccl/goccl"
)

// Layout is a way to lay out or run the buckets, for Reducer.Apply. Cap and
// Bounds choose where buckets end; Overlap, Hold and NoComm choose what happens
// to a full one and leave the bounds alone.
type Layout struct {
	kind   layoutKind
	first  int64
	bytes  int64
	bounds []int
}

type layoutKind uint8

const (
	layoutCap layoutKind = iota + 1
	layoutBounds
	layoutOverlap
	layoutHold
	layoutNoComm
)

// Cap closes the first bucket at first bytes and the others at bytes, as
// Config.FirstBytes and Config.Bytes do.
func Cap(first, bytes int64) Layout { return Layout{kind: layoutCap, first: first, bytes: bytes} }

// Bounds ends buckets after the given numbers of gradients, counted in the
// present order: Bounds(2, 5) makes buckets of gradients 0-1, 2-4 and the rest.
// A bucket never mixes types, so that one may be split further.
func Bounds(after ...int) Layout { return Layout{kind: layoutBounds, bounds: slices.Clone(after)} }

// Overlap starts the reduction of a bucket as soon as it and all before it are
// full. This is how a Reducer begins.
func Overlap() Layout { return Layout{kind: layoutOverlap} }

// Hold starts all reductions in Finish: the same result bit for bit, nothing
// hidden behind the backward pass.
func Hold() Layout { return Layout{kind: layoutHold} }

// NoComm does everything but the reduction: buckets fill, gradients are copied
// in and out, and stay each rank's own. It is the step with only the wire left
// out, against which exposed communication is measured (see Exposed). Ranks
// drift apart meanwhile: put the parameters back afterwards.
func NoComm() Layout { return Layout{kind: layoutNoComm} }

// String describes the layout, for example "cap(1048576,26214400)".
func (l Layout) String() string {
	switch l.kind {
	case layoutCap:
		return fmt.Sprintf("cap(%d,%d)", l.first, l.bytes)
	case layoutBounds:
		return fmt.Sprintf("bounds%v", l.bounds)
	case layoutOverlap:
		return "overlap"
	case layoutHold:
		return "hold"
	case layoutNoComm:
		return "nocomm"
	}
	return "none"
}

// buckets returns the assignment that l makes of the gradients in order, and
// whether l says anything about it.
func (l Layout) buckets(order []int, items []item) ([][]int, bool, error) {
	switch l.kind {
	case layoutCap:
		if l.first <= 0 || l.bytes <= 0 {
			return nil, false, fmt.Errorf("%w: %v: sizes are positive", goccl.ErrInvalid, l)
		}
		return assign(order, items, []int64{l.first, l.bytes}), true, nil
	case layoutBounds:
		if len(l.bounds) > 0 && (l.bounds[0] <= 0 || l.bounds[len(l.bounds)-1] >= len(order)) || !increasing(l.bounds) {
			return nil, false, fmt.Errorf("%w: %v: bounds increase within 1..%d", goccl.ErrInvalid, l, len(order)-1)
		}
		return cut(order, items, l.bounds), true, nil
	case layoutOverlap, layoutHold, layoutNoComm:
		return nil, false, nil
	}
	return nil, false, fmt.Errorf("%w: the zero Layout says nothing; use Cap, Bounds, Overlap, Hold or NoComm", goccl.ErrInvalid)
}

func increasing(xs []int) bool {
	for i := 1; i < len(xs); i++ {
		if xs[i] <= xs[i-1] {
			return false
		}
	}
	return true
}

// cut divides order at the bounds and each part by key, sparse gradients apart.
// Within a part, buckets come in the order of their last gradient.
func cut(order []int, items []item, bounds []int) [][]int {
	const never = int64(1) << 62
	var out [][]int
	from := 0
	for _, to := range append(slices.Clone(bounds), len(order)) {
		out = append(out, assign(order[from:to], items, []int64{never})...)
		from = to
	}
	return out
}
