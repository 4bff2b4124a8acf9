package processgroup

import (
	"context"
	"fmt"
	"slices"

	"github.com/goccl/goccl"
)

const maxExchange = 1 << 20

// Exchange gives the data of every rank, at most 1 MiB and of any lengths, to all,
// and returns it by rank. It is a collective and blocks; it is for small things that
// ranks must know of each other, such as shapes or names, on any backend.
func (g *Group) Exchange(ctx context.Context, data []byte) ([][]byte, error) {
	if len(data) > maxExchange {
		err := fmt.Errorf("%w: exchange of %d bytes, at most %d", goccl.ErrInvalid, len(data), maxExchange)
		return nil, g.Refuse(goccl.AllGather, err).Wait(ctx)
	}
	if cause := g.cause(); cause != nil {
		return nil, cause
	}
	if x, ok := g.backend.(Exchanger); ok {
		all, err := x.Exchange(ctx, data)
		if cause := g.cause(); err != nil && cause != nil {
			return nil, cause
		}
		return all, err
	}
	lengths := make([]int64, g.Size())
	if err := AllGather(ctx, g, lengths, []int64{int64(len(data))}); err != nil {
		return nil, err
	}
	longest := int(slices.Max(lengths))
	mine, all := make([]uint8, longest), make([]uint8, longest*g.Size())
	copy(mine, data)
	if err := AllGather(ctx, g, all, mine); err != nil {
		return nil, err
	}
	parts := make([][]byte, g.Size())
	for r := range parts {
		parts[r] = all[r*longest:][:lengths[r]:lengths[r]]
	}
	return parts, nil
}
