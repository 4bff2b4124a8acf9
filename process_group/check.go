package processgroup

import (
	"fmt"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
)

// The checks of one call: what this rank alone can see to be wrong. What takes
// two ranks to see is found by the backend.

// fine reports at little cost what holds for nearly all calls: nothing is wrong
// with an in-place reduction of b. When it is false, the checks say what is.
func fine(s *settings, b *device.Buffer, op goccl.ReduceOp) bool {
	size := uintptr(b.DType.Size())
	return b.Count > 0 && b.Addr != 0 && b.Device.Kind == device.Host && size != 0 && b.Addr&(size-1) == 0 &&
		op <= goccl.Avg && b.DType.Reducible() && !s.tagged
}

// fineInto is fine for a reduction of src into dst: the same memory, or memory that
// does not overlap it.
func fineInto(s *settings, dst, src *device.Buffer, op goccl.ReduceOp) bool {
	n := uintptr(src.Count) * uintptr(src.DType.Size())
	return fine(s, src, op) && dst.DType == src.DType && dst.Count == src.Count && dst.Device == src.Device &&
		dst.Addr != 0 && dst.Addr&(uintptr(src.DType.Size())-1) == 0 &&
		(dst.Addr == src.Addr || dst.Addr+n <= src.Addr || src.Addr+n <= dst.Addr)
}

// checkBuffers looks at the buffers of one call: each usable, one element type,
// one device, a stream where the device has them.
func checkBuffers(s *settings, first device.Buffer, more ...device.Buffer) error {
	if err := first.Check(); err != nil {
		return err
	}
	if first.Device.Kind == device.CUDA && s.stream == nil {
		return fmt.Errorf("%w: the buffer lies on %v and no stream is given; call through g.On(stream) or pass OnStream", goccl.ErrInvalid, first.Device)
	}
	for i := range more {
		b := &more[i]
		if err := b.Check(); err != nil {
			return err
		}
		if b.DType != first.DType {
			return fmt.Errorf("%w: buffers of %v and %v in one call", goccl.ErrInvalid, first.DType, b.DType)
		}
		if b.Device != first.Device {
			return fmt.Errorf("%w: buffers on %v and %v in one call", goccl.ErrInvalid, first.Device, b.Device)
		}
	}
	return nil
}

// checkPlain refuses a tag, which only Send and Recv have.
func checkPlain(s *settings) error {
	if s.tagged {
		return fmt.Errorf("%w: a tag belongs to Send and Recv", goccl.ErrInvalid)
	}
	return nil
}

func checkRedop(op goccl.ReduceOp, d goccl.DType) error {
	switch {
	case !op.Valid():
		return fmt.Errorf("%w: no reduction %v", goccl.ErrInvalid, op)
	case !d.Reducible():
		return fmt.Errorf("%w: %v can be moved, not reduced", goccl.ErrUnsupported, d)
	}
	if _, scaled := op.Scale(); scaled && !d.Float() {
		return fmt.Errorf("%w: %v of %v; a scale needs floats", goccl.ErrUnsupported, op, d)
	}
	return nil
}

// checkRoot refuses a rank that is not in the group.
func (c *core) checkRank(r int) error {
	if r < 0 || r >= c.cfg.Size {
		return c.notMember(r)
	}
	return nil
}

// checkAlias refuses outputs that overlap an input other than by being it.
func checkAlias(dst, src device.Buffer) error {
	if dst.Overlaps(src) && (dst.Addr != src.Addr || dst.Count != src.Count) {
		return fmt.Errorf("%w: input and output overlap in part; let them be the same or apart", goccl.ErrInvalid)
	}
	return nil
}

// checkPart refuses a small buffer that overlaps the large one anywhere but at
// its own place, part rank of size.
func (c *core) checkPart(large, small device.Buffer) error {
	at := large.Addr + uintptr(c.cfg.Rank*small.Bytes())
	if large.Overlaps(small) && small.Addr != at {
		return fmt.Errorf("%w: input and output overlap; in place means that the small buffer is part %d of the large one", goccl.ErrInvalid, c.cfg.Rank)
	}
	return nil
}

// checkList looks at one buffer for each rank, all of count elements.
func (c *core) checkList(s *settings, list []device.Buffer, one device.Buffer) error {
	if len(list) != c.cfg.Size {
		return fmt.Errorf("%w: a list of %d buffers for %d ranks", goccl.ErrInvalid, len(list), c.cfg.Size)
	}
	if err := checkBuffers(s, one, list...); err != nil {
		return err
	}
	for r := range list {
		if list[r].Count != one.Count {
			return fmt.Errorf("%w: the buffer for rank %d holds %d elements, the single one %d; all must be equal", goccl.ErrInvalid, r, list[r].Count, one.Count)
		}
		if list[r].Overlaps(one) && (r != c.cfg.Rank || list[r].Addr != one.Addr) {
			return fmt.Errorf("%w: the buffer for rank %d overlaps the single one; only the own part may be the same memory", goccl.ErrInvalid, r)
		}
	}
	return nil
}

// checkCounts looks at the counts of AllToAllV on one side.
func (c *core) checkCounts(side string, counts []int, b device.Buffer) error {
	if len(counts) != c.cfg.Size {
		return fmt.Errorf("%w: %d %s counts for %d ranks", goccl.ErrInvalid, len(counts), side, c.cfg.Size)
	}
	left := b.Count
	for r, n := range counts {
		if n < 0 || n > left {
			return fmt.Errorf("%w: %s count %d of rank %d does not fit into the buffer of %d elements", goccl.ErrInvalid, side, n, r, b.Count)
		}
		left -= n
	}
	if left != 0 {
		return fmt.Errorf("%w: the %s counts add up to %d elements, the buffer holds %d", goccl.ErrInvalid, side, b.Count-left, b.Count)
	}
	return nil
}
