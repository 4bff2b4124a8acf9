package bucket

import (
	"context"
	"fmt"
	"slices"

	"github.com/goccl/goccl"
)

// State is the layout of the buckets in terms of parameter names. A job that
// goes on from a checkpoint restores it so that gradients are summed in the same
// places as before, and its steps give the same bits; it does not depend on the
// number of ranks. It is plain data for encoding/json.
type State struct {
	Buckets [][]string // parameter names, in order
	Limits  []int64    // bytes at which buckets close: the first, the others
	Rebuilt bool       // the layout follows an observed order
	Step    uint64     // steps completed
}

// State returns the present layout. It stands between steps.
func (r *Reducer) State() State {
	s := State{Limits: slices.Clone(r.limits), Rebuilt: r.run.rebuilt, Step: r.run.step}
	for b := range r.buckets {
		var names []string
		for _, i := range r.buckets[b].members {
			names = append(names, r.names[i])
		}
		s.Buckets = append(s.Buckets, names)
	}
	return s
}

// Restore puts a layout back. It is collective, stands between steps, and blocks
// until all ranks have come or ctx ends. A state that names other parameters
// than the model has, or that differs between ranks, is refused with an error
// that says which, and changes nothing. Views move (see View).
func (r *Reducer) Restore(ctx context.Context, s State) error {
	const name = "bucket.Restore"
	if err := r.enter(name); err != nil {
		return err
	}
	defer r.run.finish.Unlock()
	text := fmt.Sprintf("limits %v, rebuilt %v, step %d, idle %v\n", s.Limits, s.Rebuilt, s.Step, r.e.idle())
	for _, names := range s.Buckets {
		text += fmt.Sprintf("%q\n", names)
	}
	if err := r.agree(ctx, "states", text); err != nil {
		return r.fail(name, err)
	}
	buckets, err := r.fromState(s)
	if err != nil {
		return r.error(name, err)
	}
	r.limits = slices.Clone(s.Limits)
	r.run.rebuilt, r.run.step = s.Rebuilt, s.Step
	r.e.setRecord(!s.Rebuilt && !r.cfg.NoRebuild)
	if err := r.move(ctx, buckets); err != nil {
		return r.fail(name, err)
	}
	return nil
}

// fromState turns names into an assignment of this model.
func (r *Reducer) fromState(s State) ([][]int, error) {
	if !r.e.idle() {
		return nil, fmt.Errorf("%w: gradients were announced since the last Finish", goccl.ErrInvalid)
	}
	if len(s.Limits) != 2 || s.Limits[0] <= 0 || s.Limits[1] <= 0 {
		return nil, fmt.Errorf("%w: the state has limits %v; two positive sizes are expected", goccl.ErrInvalid, s.Limits)
	}
	index := make(map[string]int, len(r.names))
	for i, n := range r.names {
		if !r.items[i].frozen {
			index[n] = i
		}
	}
	out := make([][]int, len(s.Buckets))
	for b, names := range s.Buckets {
		if len(names) == 0 {
			return nil, fmt.Errorf("%w: bucket %d of the state is empty", goccl.ErrInvalid, b)
		}
		for _, n := range names {
			i, ok := index[n]
			if !ok {
				return nil, fmt.Errorf("%w: the state names %q, which the model does not have or names twice", goccl.ErrInvalid, n)
			}
			delete(index, n)
			if len(out[b]) > 0 && r.items[i].key != r.items[out[b][0]].key {
				return nil, fmt.Errorf("%w: bucket %d of the state mixes types: %q is %v", goccl.ErrInvalid, b, n, r.items[i].dtype)
			}
			out[b] = append(out[b], i)
		}
	}
	if len(index) > 0 {
		var rest []int
		for i, n := range r.names {
			if _, ok := index[n]; ok {
				rest = append(rest, i)
			}
		}
		return nil, fmt.Errorf("%w: the state lacks %s", goccl.ErrInvalid, nameList(r.names, rest))
	}
	return out, nil
}
