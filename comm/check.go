package comm

import (
	"fmt"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
)

// check refuses a call that cannot be right, before anything is queued. It
// depends on this rank's arguments only; what differs between ranks is found by
// signatures.
func (c *Call) check(rank, size int) error {
	if c.Coll == 0 {
		for i := range c.Batch {
			if err := c.Batch[i].check(rank, size); err != nil {
				return fmt.Errorf("call %d of the batch: %w", i, err)
			}
			if first, kind := c.Batch[0].kind(), c.Batch[i].kind(); kind != first {
				return fmt.Errorf("%w: call %d of the batch has its buffers in memory of kind %v, the first call of kind %v", goccl.ErrInvalid, i, kind, first)
			}
		}
		return nil
	}
	if !c.Coll.Valid() {
		return fmt.Errorf("%w: %v", goccl.ErrInvalid, c.Coll)
	}
	if err := c.checkRanks(rank, size); err != nil {
		return err
	}
	src, dst := c.uses(rank)
	for _, b := range []struct {
		name string
		used bool
		buf  device.Buffer
	}{{"source", src, c.Src}, {"destination", dst, c.Dst}} {
		if !b.used {
			continue
		}
		if err := b.buf.Check(); err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
	}
	if c.Coll.Reduces() && (!c.Op.Valid() || !c.unitBuffer().DType.Reducible()) {
		return fmt.Errorf("%w: %v of %v", goccl.ErrUnsupported, c.Op, c.unitBuffer().DType)
	}
	if _, scaled := c.Op.Scale(); c.Coll.Reduces() && scaled && !c.unitBuffer().DType.Float() {
		return fmt.Errorf("%w: %v of %v; it is defined for floats", goccl.ErrUnsupported, c.Op, c.unitBuffer().DType)
	}
	if src && dst {
		return c.checkPair(rank, size)
	}
	return nil
}

func (c *Call) checkRanks(rank, size int) error {
	if c.Coll == goccl.SendRecv || c.Coll.Rooted() {
		if c.Root < 0 || c.Root >= size {
			return fmt.Errorf("%w: rank %d in a communicator of %d ranks", goccl.ErrInvalid, c.Root, size)
		}
	}
	return nil
}

// uses reports which buffers matter on this rank.
func (c *Call) uses(rank int) (src, dst bool) {
	root := rank == c.Root
	switch c.Coll {
	case goccl.Barrier:
		return false, false
	case goccl.SendRecv:
		return c.Send, !c.Send
	case goccl.Reduce, goccl.Gather:
		return true, root
	case goccl.Broadcast, goccl.Scatter:
		return root, true
	}
	return true, true
}

// checkPair refuses a source and a destination that do not fit each other.
func (c *Call) checkPair(rank, size int) error {
	s, d := c.Src, c.Dst
	if s.Device != d.Device {
		return fmt.Errorf("%w: source on %v and destination on %v", goccl.ErrInvalid, s.Device, d.Device)
	}
	if s.DType != d.DType {
		return fmt.Errorf("%w: source of %v and destination of %v", goccl.ErrInvalid, s.DType, d.DType)
	}
	want, inPlace := s.Count, s.Addr == d.Addr
	switch c.Coll {
	case goccl.AllGather, goccl.Gather:
		want, inPlace = s.Count*size, s.Addr == d.Addr+uintptr(rank*s.Bytes())
	case goccl.ReduceScatter, goccl.Scatter:
		if s.Count != d.Count*size {
			return fmt.Errorf("%w: %v: source of %d elements for %d ranks with a destination of %d; want %d", goccl.ErrInvalid, c.Coll, s.Count, size, d.Count, d.Count*size)
		}
		want, inPlace = d.Count, d.Addr == s.Addr+uintptr(rank*d.Bytes())
	case goccl.AllToAll:
		if s.Count%size != 0 {
			return fmt.Errorf("%w: alltoall of %d elements does not divide by %d ranks", goccl.ErrInvalid, s.Count, size)
		}
		inPlace = size == 1 && inPlace
	}
	if d.Count != want {
		return fmt.Errorf("%w: %v: destination of %d elements; want %d", goccl.ErrInvalid, c.Coll, d.Count, want)
	}
	if s.Overlaps(d) && !inPlace {
		return fmt.Errorf("%w: %v: source and destination overlap without being in place", goccl.ErrInvalid, c.Coll)
	}
	return nil
}
