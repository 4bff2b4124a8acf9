package hook

import (
	"context"
	"fmt"
	"runtime"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/bucket"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/process_group"
)

// Compress averages float32 gradients in a 16-bit type: half the bytes on the
// wire, and a relative error of about 2^-11 (F16) or 2^-8 (BF16) per rounding.
// Buckets of other types are averaged as they are. A Compress serves one Reducer.
//
// Each gradient is divided by the number of ranks before it is rounded, so that
// the sum stays in range: an F16 holds up to 65504. What is below 6e-8 after the
// division is lost in F16; BF16 has the range of float32.
type Compress struct {
	dtype   goccl.DType
	arena   device.Buffer
	scratch []device.Buffer // per bucket; Count 0: not compressed
	scale   float32         // 1 / ranks
}

var (
	_ bucket.Hook     = (*Compress)(nil)
	_ bucket.Preparer = (*Compress)(nil)
	_ bucket.Finisher = (*Compress)(nil)
)

// F16 compresses to IEEE halves.
func F16() *Compress { return &Compress{dtype: goccl.F16} }

// BF16 compresses to bfloat16.
func BF16() *Compress { return &Compress{dtype: goccl.BF16} }

// String names the hook: "compress(f16)". Ranks compare it.
func (c *Compress) String() string { return fmt.Sprintf("compress(%v)", c.dtype) }

// Prepare gets memory for the compressed buckets. The buckets of a model have the
// same length in every layout, so that it is got once.
func (c *Compress) Prepare(_ context.Context, g *processgroup.Group, bs []*bucket.Bucket) error {
	total := 0
	for _, b := range bs {
		if at := b.Buffer().Device; at.Kind != device.Host {
			return fmt.Errorf("%w: %v rounds on the host, and the gradients are on %v", goccl.ErrUnsupported, c, at)
		}
		total += compressed(b)
	}
	if total != c.arena.Count {
		arena, err := g.NewBuffer(total, c.dtype)
		if err != nil {
			return err
		}
		c.arena = arena
	}
	c.scale = 1 / float32(g.Size())
	c.scratch = make([]device.Buffer, len(bs))
	from := 0
	for k, b := range bs {
		n := compressed(b)
		c.scratch[k] = c.arena.Slice(from, from+n)
		from += n
	}
	return nil
}

// compressed is the number of elements of b that travel compressed.
func compressed(b *bucket.Bucket) int {
	if buf := b.Buffer(); buf.DType == goccl.F32 {
		return buf.Count
	}
	return 0
}

// Start rounds the bucket and sums the halves.
func (c *Compress) Start(_ context.Context, b *bucket.Bucket) processgroup.Work {
	s := c.scratch[b.Index()]
	if s.Count == 0 {
		return b.Group().AllReduce(b.Buffer(), goccl.Avg, b.Options()...)
	}
	narrow(s, b.Buffer(), c.scale)
	return b.Group().AllReduce(s, goccl.Sum, b.Options()...)
}

// Finish widens the averages into the bucket.
func (c *Compress) Finish(_ context.Context, b *bucket.Bucket) error {
	if s := c.scratch[b.Index()]; s.Count > 0 {
		widen(b.Buffer(), s)
		runtime.KeepAlive(s.Owner)
	}
	return nil
}
