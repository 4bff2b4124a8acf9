package bucket

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/process_group"
)

// Reducer averages the gradients of one model over the ranks of a group. Ready
// may be called from many goroutines at once; everything else is for one
// goroutine, and comes after the calls to Ready that it is about have returned.
//
// Between New and Close the operations of the group are the Reducer's: another
// collective on it, issued while gradients are becoming ready, would meet a
// bucket on another rank. Use a second group for those.
type Reducer struct {
	g       *processgroup.Group
	cfg     Config
	params  []param
	items   []item
	names   []string
	arenas  []device.Buffer // per key: all buckets of it, one after the other
	slots   []device.Buffer // per parameter: its gradient inside its bucket
	grads   []device.Buffer // per parameter: its gradient outside; Addr 0: the slot is it
	given   [][]processgroup.Option
	place   placement
	buckets []Bucket
	works   []op
	e       *engine[op]
	dev     *onDevice // nil: in host memory
	limits  []int64
	run     running
	use     usage
	active  activity
	stall   *stallWatch
	closing closing
}

// running is the state of the step in Finish; finish guards it.
type running struct {
	finish  sync.Mutex
	ended   bool // the backward pass is over and all is started
	settled int  // buckets [0, settled) have their result
	rebuild bool // lay out anew when the step is over
	rebuilt bool // that has happened
	noComm  bool // start nothing
	given   bool // grads are those of a call to Reduce
	blocked time.Duration
	step    uint64 // steps completed

	mu    sync.Mutex // guards stats, for callers beside Finish
	stats Stats
}

type closing struct {
	once   sync.Once
	closed atomic.Bool
	failed sync.Once // the group has been told
	err    error
}

// New prepares the buckets for parameters ps, given in the order in which the
// forward pass uses them. It is collective: all ranks of g call it with the same
// names, sizes, types and configuration, and the first difference is an
// ErrMismatch on every rank that shows both sides. Unless told otherwise it
// gives the values of rank Config.SyncFrom to all. It blocks until all ranks
// have come or ctx ends. What Param.Value and Param.Grad point to stays in use
// until Close. On a device, work that writes values has ended before.
func New(ctx context.Context, g *processgroup.Group, ps []Param, cfg Config) (*Reducer, error) {
	r := &Reducer{g: g}
	if err := r.setUp(ctx, ps, cfg); err != nil {
		if r.dev != nil {
			err = errors.Join(err, r.dev.release())
		}
		return nil, r.fail("bucket.New", err)
	}
	return r, nil
}

func (r *Reducer) setUp(ctx context.Context, ps []Param, cfg Config) error {
	cfg, err := cfg.withDefaults(r.g.Size())
	if err != nil {
		return err
	}
	if r.params, err = resolve(ps); err != nil {
		return err
	}
	r.cfg, r.limits = cfg, cfg.limits()
	if r.dev, err = openDevice(r.params, cfg.Device); err != nil {
		return err
	}
	for _, p := range r.params {
		r.items = append(r.items, p.item)
		r.names = append(r.names, p.name)
		r.grads = append(r.grads, p.grad)
	}
	r.given = make([][]processgroup.Option, len(ps))
	r.slots = make([]device.Buffer, len(ps))
	if err := r.agree(ctx, "parameters", signature(cfg, r.params)); err != nil {
		return err
	}
	buckets := assign(reversed(len(ps)), r.items, r.limits)
	if err := r.allocate(buckets); err != nil {
		return err
	}
	r.layOut(buckets)
	mode := mode{findUnused: cfg.FindUnused, record: !cfg.NoRebuild}
	r.e = newEngine(r, newMachine(r.names, buckets, mode), time.Now)
	r.use.reset(len(ps))
	r.stall = newStallWatch(r.cfg.StallAfter, r.reportStall)
	if err := r.syncValues(ctx); err != nil {
		return err
	}
	return r.prepareHook(ctx)
}

// View is gradient i inside its bucket: what a framework writes its gradient to
// when Param.Grad is empty. A view is valid until the next Finish, Apply or
// Restore: buckets are laid out anew after the first step unless
// Config.NoRebuild is set, and the averages move along, so call View again after
// it. The result of a frozen parameter is the zero Buffer, as is one out of
// range.
func (r *Reducer) View(i int) device.Buffer {
	if i < 0 || i >= len(r.slots) {
		return device.Buffer{}
	}
	return r.slots[i]
}

// Ready announces that gradient i is complete for this step: at Param.Grad, or
// at View(i). It may be called from any goroutine, once per parameter and step.
// It never waits and never allocates; when it completes a bucket it starts the
// operation. Options go to the operation of the bucket that holds the gradient.
// Inside NoSync it only takes note.
//
// On a device "complete" means queued: OnStream names the stream that writes the
// gradient, and the bucket comes after what is queued on it. Gradients of one bucket
// may come from several streams.
//
// An error is about the caller: a gradient announced twice or after Finish, or
// an index that has none. It fails the step on all ranks.
func (r *Reducer) Ready(i int, o ...processgroup.Option) error {
	if r.closing.closed.Load() {
		return r.error("bucket.Ready", fmt.Errorf("%w: the reducer", goccl.ErrClosed))
	}
	if len(o) > 0 && i >= 0 && i < len(r.given) {
		r.given[i] = append(r.given[i][:0], o...)
	}
	if r.dev != nil && streamOf(o) == nil {
		return r.fail("bucket.Ready", fmt.Errorf("%w: gradients on %v are announced with OnStream, the stream that writes them", goccl.ErrInvalid, r.dev.dev.ID()))
	}
	if err := r.e.ready(i); err != nil {
		return r.fail("bucket.Ready", err)
	}
	return nil
}

// NoSync runs fn, in which gradients are accumulated on this rank only: Ready
// takes note and Finish returns at once. The next step outside reduces what has
// come together. The framework does the adding, in Param.Grad or View. It is
// refused in the middle of a step. All ranks use it for the same passes.
func (r *Reducer) NoSync(fn func() error) error {
	if err := r.e.setNoSync(true); err != nil {
		return r.error("bucket.NoSync", err)
	}
	defer r.e.setNoSync(false) //nolint:errcheck // it can fail only where the step has failed, which Finish tells
	return fn()
}

// closeWithin is how long Close waits for what else is queued on a device.
const closeWithin = time.Minute

// Close waits for operations in flight, bounded by the group's Timeout, and ends
// the Reducer. It is not collective. Gradients in views are lost with the
// group's memory, not before. Close is idempotent; it does not close the group.
func (r *Reducer) Close() error {
	r.closing.once.Do(func() {
		r.closing.closed.Store(true)
		r.run.finish.Lock()
		defer r.run.finish.Unlock()
		r.stall.close()
		err := r.e.quiesce(context.Background())
		if r.dev != nil && err == nil {
			ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
			defer cancel()
			if err = r.dev.drain(ctx); err == nil { // else the device may still use it
				err = r.dev.release()
			}
		}
		if err != nil {
			r.closing.err = r.error("bucket.Close", err)
		}
	})
	return r.closing.err
}

// fill, zero, start and work are what the engine asks for.

func (r *Reducer) fill(i int) error {
	g := r.grads[i]
	switch {
	case g.Addr == 0:
	case r.dev == nil:
		copyHost(r.slots[i], g)
	default:
		s := streamOf(r.given[i])
		if s == nil {
			s = r.dev.own
		}
		return r.dev.copy(r.slots[i], g, s)
	}
	return nil
}

func (r *Reducer) zero(i int) error {
	r.use.mask[i] = 0
	return r.clear(r.slots[i])
}

func (r *Reducer) start(b int) {
	k := &r.buckets[b]
	if r.run.noComm {
		r.forget(k)
		r.works[b] = op{none: true}
		return
	}
	if b == 0 {
		r.announceActive(1)
	}
	k.opts = k.opts[:1]
	for _, i := range k.members {
		k.opts = append(k.opts, r.given[i]...)
	}
	if r.dev != nil {
		if err := r.order(k); err != nil {
			r.works[b] = op{err: err}
			return
		}
	}
	r.forget(k)
	r.works[b] = op{work: r.cfg.Hook.Start(r.g.Context(), k)}
}

// forget drops the options that the gradients of k were announced with.
func (r *Reducer) forget(k *Bucket) {
	for _, i := range k.members {
		r.given[i] = r.given[i][:0]
	}
}

func (r *Reducer) work(b int) op { return r.works[b] }

var _ effects[op] = (*Reducer)(nil)
