package bucket

import (
	"context"
	"fmt"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/process_group"
)

// allocate gets one arena per type from the group, in memory that the ranks of a
// machine share where the group has such, so that buckets are reduced where they
// lie. The arenas are the group's and end with it.
func (r *Reducer) allocate(buckets [][]int) error {
	p := place(r.items, r.counts(), buckets)
	for a, k := range p.keys {
		buf, err := r.g.NewBuffer(p.length[a], k.dtype)
		switch {
		case err != nil:
			return fmt.Errorf("memory for gradients, %d x %v: %w", p.length[a], k.dtype, err)
		case buf.Device != k.device:
			return fmt.Errorf("%w: gradients are on %v and the group's memory is on %v", goccl.ErrUnsupported, k.device, buf.Device)
		}
		r.arenas = append(r.arenas, buf)
	}
	return nil
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
	copies := append(r.arenas[:0:0], r.arenas...)
	for a, k := range old.keys {
		copies[a] = heapBuffer(r.arenas[a].Count, k)
		copyHost(copies[a], r.arenas[a])
		zeroHost(r.arenas[a])
	}
	r.layOut(buckets)
	for i, a := range old.arena {
		if a >= 0 {
			copyHost(r.slots[i], copies[a].Slice(old.param[i].from, old.param[i].to))
		}
	}
	r.e.next(buckets)
	return r.prepareHook(ctx)
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
