package comm

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/exec"
	"github.com/goccl/goccl/comm/transport"
	"github.com/goccl/goccl/device"
)

// Window is memory that every rank of a communicator has a part of. Where all
// ranks can map each other's part, operations whose buffers lie in windows read
// and write them in place, without a copy.
type Window struct {
	c     *Communicator
	id    uint32
	parts []transport.Segment // by rank
	buf   device.Buffer
}

// windows finds windows by address. Lookups read a snapshot and take no lock.
type windows struct {
	rank int
	list atomic.Pointer[[]*Window]
}

// Base implements exec.Windows.
func (w *windows) Base(id uint32, peer int) (uintptr, int64) {
	if l := w.list.Load(); l != nil {
		for _, x := range *l {
			if x.id == id {
				m := x.parts[peer].Mem()
				return m.Addr(0), int64(m.Len())
			}
		}
	}
	return 0, 0
}

// find reports whether both buffers of a call lie in windows, and where.
func (w *windows) find(call *Call, a *exec.Args) bool {
	l := w.list.Load()
	if l == nil {
		return false
	}
	in, ok := place(*l, w.rank, call.Src)
	if !ok {
		return false
	}
	out, ok := place(*l, w.rank, call.Dst)
	if ok {
		a.InAt, a.OutAt = in, out
	}
	return ok
}

func place(list []*Window, rank int, b device.Buffer) (exec.Place, bool) {
	for _, w := range list {
		m := w.parts[rank].Mem()
		if off := int64(b.Addr) - int64(m.Addr(0)); off >= 0 && off+int64(b.Bytes()) <= int64(m.Len()) {
			return exec.Place{Window: w.id, Off: off}, true
		}
	}
	return exec.Place{}, false
}

// Alloc makes a window of at least the given bytes on every rank. It is
// collective: all ranks call it, in the same order and with the same size; it
// blocks until they have, bounded by the timeout. Where ranks cannot map each
// other's memory the window is plain memory and operations on it copy.
func (c *Communicator) Alloc(bytes int) (*Window, error) {
	if bytes <= 0 {
		return nil, fmt.Errorf("%w: window of %d bytes", goccl.ErrInvalid, bytes)
	}
	if c.mapper == nil {
		return c.allocLocal(bytes)
	}
	ctx, cancel := context.WithTimeout(c.life, c.timeout)
	defer cancel()
	parts, err := c.share(ctx, c.mapper, bytes)
	if err != nil {
		e := goccl.NewError("alloc", err)
		e.Rank, e.Group = c.rank, c.name
		return nil, e
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.windowIDs++
	m := parts[c.rank].Mem()
	w := &Window{c: c, id: c.windowIDs, parts: parts}
	w.buf = device.FromPointer(m.Addr(0), bytes, goccl.U8, device.ID{}, w)
	var list []*Window
	if old := c.windows.list.Load(); old != nil {
		list = append(list, *old...)
	}
	list = append(list, w)
	c.windows.list.Store(&list)
	return w, nil
}

// allocLocal is Alloc where nothing is shared. It still meets the other ranks,
// so that a rank that does not call is found.
func (c *Communicator) allocLocal(bytes int) (*Window, error) {
	if c.session != nil {
		ctx, cancel := context.WithTimeout(c.life, c.timeout)
		defer cancel()
		if err := c.session.Barrier(ctx); err != nil {
			return nil, err
		}
	}
	mem := make([]uint64, (bytes+7)/8)
	b := device.SliceOf(mem)
	w := &Window{c: c}
	w.buf = device.FromPointer(b.Addr, bytes, goccl.U8, device.ID{}, b.Owner)
	return w, nil
}

// share makes a segment on every rank and maps all of them here.
func (c *Communicator) share(ctx context.Context, m transport.Mapper, bytes int) (parts []transport.Segment, err error) {
	own, err := m.Alloc(bytes)
	var handle []byte
	if err == nil {
		handle = own.Handle()
	}
	// A rank that failed takes part all the same, with an empty handle, so that
	// the others learn of it at once.
	handles, gatherErr := c.session.AllGather(ctx, handle)
	if err != nil || gatherErr != nil {
		if own != nil {
			err = errors.Join(err, own.Close())
		}
		return nil, errors.Join(err, gatherErr)
	}
	parts = make([]transport.Segment, c.size)
	ok := byte(1)
	for r := range c.size {
		switch {
		case r == c.rank:
			parts[r] = own
		case len(handles[r]) == 0:
			err = errors.Join(err, fmt.Errorf("rank %d (%s) has no memory to share", r, c.address(r)))
		default:
			s, mapErr := m.Map(ctx, &c.peers[r], handles[r])
			if mapErr != nil {
				err = errors.Join(err, fmt.Errorf("map memory of rank %d (%s): %w", r, c.address(r), mapErr))
				continue
			}
			parts[r] = s
		}
	}
	if err != nil {
		ok = 0
	}
	all, gatherErr := c.session.AllGather(ctx, []byte{ok})
	for r, b := range all {
		if len(b) != 1 || b[0] != 1 {
			err = errors.Join(err, fmt.Errorf("rank %d (%s) could not map every rank's memory", r, c.address(r)))
		}
	}
	if err = errors.Join(err, gatherErr); err != nil {
		return nil, errors.Join(err, closeAll(parts))
	}
	return parts, nil
}

func closeAll(parts []transport.Segment) error {
	var errs []error
	for _, s := range parts {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}

// Buffer returns this rank's part, as bytes. View it as another type with As.
func (w *Window) Buffer() device.Buffer { return w.buf }

// As returns the first n elements of type d of this rank's part. It panics when
// they do not fit, as a slice expression does.
func (w *Window) As(n int, d goccl.DType) device.Buffer {
	if n < 0 || n*d.Size() > w.buf.Count {
		panic(fmt.Sprintf("comm: %d elements of %v in a window of %d bytes", n, d, w.buf.Count)) // panic: programmer error, see doc
	}
	return device.FromPointer(w.buf.Addr, n, d, device.ID{}, w.buf.Owner)
}

// Close frees the window. It is collective: it blocks until all ranks call it,
// bounded by the timeout, so that none still reads another's part.
func (w *Window) Close() error {
	c := w.c
	var err error
	if c.session != nil && c.failed.Load() == nil {
		ctx, cancel := context.WithTimeout(c.life, min(c.timeout, time.Minute))
		defer cancel()
		err = c.session.Barrier(ctx)
	}
	if w.parts == nil {
		return err
	}
	c.mu.Lock()
	if old := c.windows.list.Load(); old != nil {
		var list []*Window
		for _, x := range *old {
			if x != w {
				list = append(list, x)
			}
		}
		c.windows.list.Store(&list)
	}
	c.mu.Unlock()
	parts := w.parts
	w.parts = nil
	return errors.Join(err, closeAll(parts))
}
