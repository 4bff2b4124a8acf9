package cuda

import (
	"context"
	"fmt"
	"time"

	"github.com/goccl/goccl"
)

// stagingBytes is what moves at once between the host and the device through
// Write and Read.
const stagingBytes = 4 << 20

// staging is pinned memory through which Write and Read go. The driver may go on
// with a copy that nobody waits for any more, so it must not touch memory that Go
// hands to somebody else.
type staging struct {
	turn chan struct{} // holds one token while nobody uses buf
	buf  *Pinned
}

func newStaging() *staging {
	s := &staging{turn: make(chan struct{}, 1)}
	s.turn <- struct{}{}
	return s
}

// Write copies p to memory of the device and blocks until it is there or ctx
// ends, in no order with the work of streams. It is for setting up, not for
// speed.
func (d *Device) Write(ctx context.Context, dst uintptr, p []byte) error {
	return d.move(ctx, len(p), func(host *Pinned, off, n int) error {
		copy(host.Host(), p[off:off+n])
		return d.aux.Copy(dst+uintptr(off), host.Addr(), n)
	}, nil)
}

// Read copies memory of the device to p and blocks until it is there or ctx ends,
// in no order with the work of streams. It is for looking, not for speed.
func (d *Device) Read(ctx context.Context, p []byte, src uintptr) error {
	return d.move(ctx, len(p), func(host *Pinned, off, n int) error {
		return d.aux.Copy(host.Addr(), src+uintptr(off), n)
	}, func(host *Pinned, off, n int) { copy(p[off:off+n], host.Host()) })
}

// move passes bytes through the staging memory piece by piece: start queues the
// copy of one, finish runs when it is done.
func (d *Device) move(ctx context.Context, bytes int, start func(host *Pinned, off, n int) error, finish func(host *Pinned, off, n int)) error {
	if err := d.hold("copies"); err != nil {
		return err
	}
	defer d.letGo("copies")
	select {
	case <-d.staging.turn:
	case <-ctx.Done():
		return d.wrap(context.Cause(ctx))
	}
	defer func() { d.staging.turn <- struct{}{} }()
	if d.staging.buf == nil {
		buf, err := d.pinned(stagingBytes)
		if err != nil {
			return d.wrap(err)
		}
		d.staging.buf = buf
	}
	for off := 0; off < bytes; off += stagingBytes {
		n := min(stagingBytes, bytes-off)
		if err := start(d.staging.buf, off, n); err != nil {
			return err
		}
		if err := d.aux.Sync(ctx); err != nil {
			d.staging.buf = nil // in use by the driver, until the context ends
			return err
		}
		if finish != nil {
			finish(d.staging.buf, off, n)
		}
	}
	return nil
}

// free gives the staging memory back.
func (s *staging) free() error {
	if s.buf == nil {
		return nil
	}
	err := s.buf.release()
	s.buf = nil
	return err
}

// clearTimeout bounds the wait for new memory to be zero, which takes less than a
// second when the device is free.
const clearTimeout = time.Minute

// zero clears memory of the device and waits for it.
func (d *Device) zero(addr uintptr, bytes int) error {
	sec, err := d.aux.Enter()
	if err != nil {
		return err
	}
	err = sec.Fill(addr, 0, bytes)
	sec.Leave()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), clearTimeout,
		fmt.Errorf("%w: it has not cleared %d bytes in %v; a kernel that waits for something may hold all of it", goccl.ErrTimeout, bytes, clearTimeout))
	defer cancel()
	return d.aux.Sync(ctx)
}
