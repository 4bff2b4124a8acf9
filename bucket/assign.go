package bucket

import (
	"cmp"
	"slices"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
)

// key separates gradients that cannot share a bucket: a bucket is reduced by one
// operation on one type in one memory.
type key struct {
	dtype  goccl.DType
	device device.ID
}

// item is what assignment needs to know of a parameter.
type item struct {
	key
	bytes  int64
	sparse bool // reduced in a bucket of its own
	frozen bool // has no gradient, belongs to no bucket
}

// assign groups the items into buckets. order lists item indices in the order in
// which gradients are expected; frozen ones in it are passed over. limits holds
// the size at which a bucket closes: limits[0] for the first bucket of each key,
// the next one for the next, the last one for all that follow.
//
// The rules:
//   - each key (dtype, device) has its own open bucket and its own position in
//     limits;
//   - an item is never split: a bucket closes when its size reaches the limit,
//     so that it may exceed the limit by less than its last item;
//   - a sparse item is a bucket by itself and moves no position;
//   - buckets are numbered by the place of their last item in order, because a
//     bucket can fire when its last gradient arrives, and buckets fire strictly
//     by number. The small first limit therefore falls on the bucket that fires
//     first, which starts the wire early.
func assign(order []int, items []item, limits []int64) [][]int {
	type open struct {
		members []int
		bytes   int64
		limit   int // position in limits
		last    int // place in order of the last member
	}
	type closed struct {
		members []int
		last    int
	}
	var (
		done  []closed
		keys  []key // in order of first appearance: a map has no order
		state = map[key]*open{}
	)
	for at, i := range order {
		it := items[i]
		if it.frozen {
			continue
		}
		if it.sparse {
			done = append(done, closed{[]int{i}, at})
			continue
		}
		o := state[it.key]
		if o == nil {
			o = &open{}
			state[it.key] = o
			keys = append(keys, it.key)
		}
		o.members = append(o.members, i)
		o.bytes += it.bytes
		o.last = at
		if o.bytes >= limits[o.limit] {
			done = append(done, closed{o.members, at})
			*o = open{limit: min(o.limit+1, len(limits)-1)}
		}
	}
	for _, k := range keys {
		if o := state[k]; len(o.members) > 0 {
			done = append(done, closed{o.members, o.last})
		}
	}
	slices.SortFunc(done, func(a, b closed) int { return cmp.Compare(a.last, b.last) })
	out := make([][]int, len(done))
	for b, c := range done {
		out[b] = c.members
	}
	return out
}

// reversed returns n-1 ... 0: the order in which gradients of parameters
// registered 0 ... n-1 come out of a backward pass.
func reversed(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = n - 1 - i
	}
	return out
}

// flatten returns the members of all buckets, one bucket after the other.
func flatten(buckets [][]int) []int {
	var out []int
	for _, b := range buckets {
		out = append(out, b...)
	}
	return out
}
