package bucket

import (
	"context"
	"errors"
	"fmt"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/process_group"
)

// allocate gets one arena per type from the group, in memory that the ranks of a
// machine share where the group has such, so that buckets are reduced where they
// lie. The arenas are the group's and end with it. Where the group has none of the
// device's memory they come from the device and end with the Reducer.
func (r *Reducer) allocate(buckets [][]int) error {
	p := place(r.items, r.counts(), buckets)
	for a, k := range p.keys {
		buf, err := r.arena(p.length[a], k)
		if err != nil {
			return fmt.Errorf("memory for gradients, %d x %v: %w", p.length[a], k.dtype, err)
		}
		r.arenas = append(r.arenas, buf)
	}
	return nil
}

func (r *Reducer) arena(n int, k key) (device.Buffer, error) {
	buf, err := r.g.NewBuffer(n, k.dtype)
	if err != nil || buf.Device == k.device {
		return buf, err
	}
	if err := r.g.FreeBuffer(buf); err != nil {
		return buf, err
	}
	if r.dev == nil {
		return buf, fmt.Errorf("%w: gradients are on %v and the group's memory is on %v", goccl.ErrUnsupported, k.device, buf.Device)
	}
	buf, m, err := r.dev.alloc(n, k)
	if err == nil {
		r.dev.memory = append(r.dev.memory, m)
	}
	return buf, err
}

func (r *Reducer) counts() []int {
	out := make([]int, len(r.params))
	for i, p := range r.params {
		out[i] = p.count
	}
	return out
}

// layOut points slots and buckets at their places in the arenas.
func (r *Reducer) layOut(buckets [][]int) {
	r.place = place(r.items, r.counts(), buckets)
	for i, a := range r.place.arena {
		if a >= 0 {
			r.slots[i] = r.arenas[a].Slice(r.place.param[i].from, r.place.param[i].to)
		}
	}
	r.buckets = make([]Bucket, len(buckets))
	r.works = make([]op, len(buckets))
	for b, members := range buckets {
		at := r.place.bucket[b]
		k := Bucket{r: r, index: b, buffer: r.arenas[at.arena].Slice(at.from, at.to), members: members}
		for _, i := range members {
			k.bytes += r.items[i].bytes
		}
		k.text = bucketText(b, r.names, members)
		k.opts = append(make([]processgroup.Option, 0, 1+len(members)), processgroup.Label(k.text))
		r.buckets[b] = k
	}
}

// move lays the buckets out anew and takes the gradients along. Each slot keeps
// its size, so that the arenas keep theirs: it is a permutation.
func (r *Reducer) move(ctx context.Context, buckets [][]int) error {
	old := r.place
	if r.dev != nil {
		if err := r.dev.after(r.dev.last); err != nil {
			return err
		}
	}
	copies := append(r.arenas[:0:0], r.arenas...)
	var errs []error
	for a, k := range old.keys {
		var free func() error
		var err error
		if copies[a], free, err = r.scratch(r.arenas[a].Count, k); err != nil {
			return fmt.Errorf("memory for another layout, %d x %v: %w", r.arenas[a].Count, k.dtype, err)
		}
		defer free() //nolint:errcheck // memory of the device that is no longer needed
		errs = append(errs, r.carry(copies[a], r.arenas[a]), r.clear(r.arenas[a]))
	}
	r.layOut(buckets)
	for i, a := range old.arena {
		if a >= 0 {
			errs = append(errs, r.carry(r.slots[i], copies[a].Slice(old.param[i].from, old.param[i].to)))
		}
	}
	if r.dev != nil {
		errs = append(errs, r.dev.own.Sync(ctx))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	r.e.next(buckets)
	return r.prepareHook(ctx)
}

// scratch returns memory of n elements for a while, and what gives it back.
func (r *Reducer) scratch(n int, k key) (device.Buffer, func() error, error) {
	if r.dev == nil {
		return heapBuffer(n, k), func() error { return nil }, nil
	}
	b, m, err := r.dev.alloc(n, k)
	if err != nil {
		return b, nil, err
	}
	return b, m.Free, nil
}

// carry copies src to dst: at once in host memory, on the own stream on a device.
func (r *Reducer) carry(dst, src device.Buffer) error {
	if r.dev == nil {
		copyHost(dst, src)
		return nil
	}
	return r.dev.copy(dst, src, r.dev.own)
}

// clear fills b with zeros, as carry does with copies.
func (r *Reducer) clear(b device.Buffer) error {
	if r.dev == nil {
		zeroHost(b)
		return nil
	}
	return r.dev.zero(b)
}

func (r *Reducer) prepareHook(ctx context.Context) error {
	p, ok := r.cfg.Hook.(Preparer)
	if !ok {
		return nil
	}
	bs := make([]*Bucket, len(r.buckets))
	for b := range r.buckets {
		bs[b] = &r.buckets[b]
	}
	return p.Prepare(ctx, r.g, bs)
}
