package bucket

import (
	"context"
	"errors"
	"fmt"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/process_group"
)

// onDevice is the part of a Reducer whose model lies on a device. What the host
// would do at once is queued on a stream there.
type onDevice struct {
	dev    device.Device
	own    device.Stream   // for what no stream of the caller's is given
	memory []device.Memory // arenas that did not come from the group
	last   device.Stream   // of the last FinishOn: what it queued may still run
	late   []op            // operations that the last FinishOn did not wait for
	dirty  bool            // own has copies back that Finish waits for
	asides *aside          // the last one started
}

// openDevice returns nil for a model in host memory.
func openDevice(ps []param, dev device.Device) (*onDevice, error) {
	at, err := whereabouts(ps)
	switch {
	case err != nil:
		return nil, err
	case at.Kind == device.Host && (dev == nil || dev.ID() == at || len(ps) == 0):
		return nil, nil
	case at.Kind == device.Host:
		return nil, fmt.Errorf("%w: Config.Device is %v and the parameters are in host memory", goccl.ErrInvalid, dev.ID())
	case dev == nil:
		return nil, fmt.Errorf("%w: the parameters are on %v; give that device as Config.Device", goccl.ErrInvalid, at)
	case dev.ID() != at:
		return nil, fmt.Errorf("%w: the parameters are on %v and Config.Device is %v", goccl.ErrInvalid, at, dev.ID())
	}
	own, err := dev.NewStream(0)
	if err != nil {
		return nil, err
	}
	if _, ok := own.(interface {
		device.Copier
		device.Filler
	}); !ok {
		return nil, errors.Join(fmt.Errorf("%w: streams of %v (%T) cannot copy and fill memory", goccl.ErrUnsupported, at, own), own.Close())
	}
	return &onDevice{dev: dev, own: own}, nil
}

// whereabouts is the one device on which all parameters lie.
func whereabouts(ps []param) (device.ID, error) {
	var at device.ID
	seen := ""
	for _, p := range ps {
		for _, b := range []device.Buffer{p.value, p.grad, {Addr: 1, Device: p.item.device}} {
			switch {
			case b.Addr == 0:
			case seen == "":
				at, seen = b.Device, p.name
			case b.Device != at:
				return at, fmt.Errorf("%w: %q is on %v and %q on %v; a Reducer is for one device", goccl.ErrUnsupported, seen, at, p.name, b.Device)
			}
		}
	}
	return at, nil
}

// alloc returns zeroed memory of n elements, and how to free it.
func (d *onDevice) alloc(n int, k key) (device.Buffer, device.Memory, error) {
	m, err := d.dev.Alloc(max(1, n*k.dtype.Size()))
	if err != nil {
		return device.Buffer{}, nil, err
	}
	return device.FromPointer(m.Addr(), n, k.dtype, k.device, m), m, nil
}

// copy queues a copy on s.
func (d *onDevice) copy(dst, src device.Buffer, s device.Stream) error {
	c, ok := s.(device.Copier)
	if !ok {
		return fmt.Errorf("%w: a stream of type %T cannot copy gradients into buckets; write them to View", goccl.ErrUnsupported, s)
	}
	return c.Copy(dst.Addr, src.Addr, src.Bytes())
}

// zero queues zeros on the own stream.
func (d *onDevice) zero(b device.Buffer) error {
	return d.own.(device.Filler).Fill(b.Addr, 0, b.Bytes())
}

// after makes the own stream wait for what is queued on s.
func (d *onDevice) after(s device.Stream) error {
	if s == nil || s == d.own {
		return nil
	}
	e, err := s.Record()
	if err != nil {
		return err
	}
	defer e.Release()
	return d.own.WaitEvent(e)
}

// flush waits for the copies back.
func (d *onDevice) flush(ctx context.Context) error {
	if d == nil || !d.dirty {
		return nil
	}
	if err := d.own.Sync(ctx); err != nil {
		return err
	}
	d.dirty = false
	return nil
}

// drain waits for operations that FinishOn left running.
func (d *onDevice) drain(ctx context.Context) error {
	var first error
	for _, w := range d.late {
		if err := w.Wait(ctx); err != nil && first == nil {
			first = err
		}
	}
	d.late = d.late[:0]
	return errors.Join(first, d.after(d.last), d.own.Sync(ctx))
}

// release gives everything back. Nothing uses it any more.
func (d *onDevice) release() error {
	var errs []error
	for _, m := range d.memory {
		errs = append(errs, m.Free())
	}
	d.memory = nil
	return errors.Join(append(errs, d.own.Close())...)
}

// streamOf is the stream with which gradient i was announced in this step, nil for
// none.
func streamOf(given []processgroup.Option) device.Stream {
	var s device.Stream
	for _, o := range given {
		if t := o.Stream(); t != nil {
			s = t
		}
	}
	return s
}

// order makes the operation of k come after the gradients in it, whichever streams
// they were announced on, and after what the own stream has done to them. r.given is
// that of this step.
func (r *Reducer) order(k *Bucket) error {
	d, first, several := r.dev, device.Stream(nil), false
	for n, i := range k.members {
		s := streamOf(r.given[i])
		if s == nil {
			s = d.own
		}
		if n == 0 {
			first = s
		}
		several = several || s != first
	}
	if !several {
		k.opts = append(k.opts, processgroup.OnStream(first))
		return nil
	}
	var done []device.Stream
	for _, i := range k.members {
		s := streamOf(r.given[i])
		known := s == nil
		for _, t := range done {
			known = known || s == t
		}
		if known {
			continue
		}
		if err := d.after(s); err != nil {
			return err
		}
		done = append(done, s)
	}
	k.opts = append(k.opts, processgroup.OnStream(d.own))
	return nil
}
