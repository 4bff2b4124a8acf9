package bucket

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/goccl/goccl"
)

// rebuild lays the buckets out in the order in which gradients became ready on
// rank 0 in the step that has just ended. It is collective and happens once. All
// ranks use rank 0's order, whatever their own was: they must issue the same
// operations.
func (r *Reducer) rebuild(ctx context.Context) error {
	order := r.e.readyOrder()
	if len(order) == 0 {
		r.run.rebuilt = true
		r.e.next(nil)
		return nil
	}
	var wire []byte
	for _, i := range order {
		wire = binary.LittleEndian.AppendUint64(wire, uint64(i))
	}
	wire, err := r.follow(ctx, "ready order", wire)
	if err != nil {
		return err
	}
	if order, err = r.checkOrder(wire); err != nil {
		return err
	}
	r.run.rebuilt = true
	return r.move(ctx, assign(order, r.items, r.limits))
}

// checkOrder turns what rank 0 sent into an order: each parameter that has a
// gradient, once.
func (r *Reducer) checkOrder(wire []byte) ([]int, error) {
	seen := make([]bool, len(r.params))
	order := make([]int, len(wire)/8)
	for k := range order {
		v := binary.LittleEndian.Uint64(wire[8*k:])
		if v >= uint64(len(seen)) || seen[v] || r.items[v].frozen {
			return nil, fmt.Errorf("%w: the ready order of rank 0 has %d at place %d, which cannot be", goccl.ErrMismatch, v, k)
		}
		seen[v] = true
		order[k] = int(v)
	}
	return order, nil
}

// Apply chooses another layout from the next step on. It is collective, stands
// between steps, and blocks until all ranks have come or ctx ends; a difference
// between ranks is an ErrMismatch on all of them. Views move (see View). Bounds
// takes the place of the rebuild after the first step, if that is still to come.
func (r *Reducer) Apply(ctx context.Context, l Layout) error {
	const name = "bucket.Apply"
	if err := r.enter(name); err != nil {
		return err
	}
	defer r.run.finish.Unlock()
	text := l.String()
	if !r.e.idle() {
		text += " in the middle of a step"
	}
	if err := r.agree(ctx, "layouts", text); err != nil {
		return r.fail(name, err)
	}
	if !r.e.idle() {
		return r.error(name, fmt.Errorf("%w: gradients were announced since the last Finish", goccl.ErrInvalid))
	}
	buckets, moves, err := l.buckets(r.present(), r.items)
	if err != nil {
		return r.error(name, err)
	}
	switch l.kind {
	case layoutCap:
		r.limits = []int64{l.first, l.bytes}
	case layoutBounds:
		r.e.setRecord(false)
	default:
		r.run.noComm = l.kind == layoutNoComm
		r.e.setHold(l.kind == layoutHold)
	}
	if !moves {
		return nil
	}
	if err := r.move(ctx, buckets); err != nil {
		return r.fail(name, err)
	}
	return nil
}

// present is the order of the gradients in the present layout.
func (r *Reducer) present() []int {
	var order []int
	for b := range r.buckets {
		order = append(order, r.buckets[b].members...)
	}
	return order
}
