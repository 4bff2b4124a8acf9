package bucket

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/process_group"
)

// maxText bounds what ranks send each other to find a difference.
const maxText = 16 << 20

// agree checks that text is the same on all ranks. Its hash and length travel
// first; only where they differ do the texts, and the error shows the first line
// in which the lowest differing rank and rank 0 do not agree. All ranks return
// the same. It is collective.
func (r *Reducer) agree(ctx context.Context, what, text string) error {
	n := r.g.Size()
	mine := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, digest(text)), uint64(len(text)))
	all, err := r.tell(ctx, "compare "+what, mine)
	if err != nil {
		return err
	}
	length := func(q int) uint64 { return binary.LittleEndian.Uint64(all[q][8:]) }
	same, longest := true, uint64(1)
	for q := range n {
		same = same && bytes.Equal(all[q], all[0])
		longest = max(longest, length(q))
	}
	if same {
		return nil
	}
	if longest > maxText {
		return agreedError{fmt.Errorf("%w: %s differ, and are too long to compare", goccl.ErrMismatch, what)}
	}
	padded := make([]byte, longest)
	copy(padded, text)
	texts, err := r.tell(ctx, "compare "+what, padded)
	if err != nil {
		return err
	}
	at := func(q int) string { return string(texts[q][:length(q)]) }
	return agreedError{disagreement(what, n, at)}
}

// disagreement names the first line in which a rank differs from rank 0.
func disagreement(what string, n int, text func(rank int) string) error {
	first := text(0)
	for q := 1; q < n; q++ {
		if line, a, b := firstDifference(first, text(q)); line >= 0 {
			return fmt.Errorf("%w: %s, line %d: rank 0 has %s; rank %d has %s", goccl.ErrMismatch, what, line, a, q, b)
		}
	}
	return fmt.Errorf("%w: the hashes of %s differ and the texts do not", goccl.ErrMismatch, what)
}

// syncValues gives the values of rank SyncFrom to all ranks, many tensors in one
// operation, and in several so that a model of thousands does not become one of
// unbounded size. On a device, where operations queue up, each is one of its own.
func (r *Reducer) syncValues(ctx context.Context) error {
	if r.cfg.NoSyncValues {
		return nil
	}
	const together = 64
	var values []param
	for _, p := range r.params {
		if p.value.Addr != 0 && p.count > 0 {
			values = append(values, p)
		}
	}
	for part := range slices.Chunk(values, together) {
		if err := r.broadcast(ctx, part); err != nil {
			return fmt.Errorf("%w\n\tin the broadcast of %s to %s", err, part[0].name, part[len(part)-1].name)
		}
	}
	return nil
}

// broadcast gives the values of some parameters to all ranks.
func (r *Reducer) broadcast(ctx context.Context, part []param) error {
	if r.dev == nil {
		return r.g.Coalesce(func() error {
			for _, p := range part {
				r.g.Broadcast(p.value, r.cfg.SyncFrom, processgroup.Label(p.name))
			}
			return nil
		}).Wait(ctx)
	}
	works := make([]processgroup.Work, 0, len(part))
	for _, p := range part {
		works = append(works, r.g.Broadcast(p.value, r.cfg.SyncFrom, processgroup.Label(p.name), processgroup.OnStream(r.dev.own)))
	}
	for _, w := range works {
		if err := w.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}
