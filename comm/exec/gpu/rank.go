package gpu

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/plan"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/device/kernels/abi"
)

// MaxWindows is the most windows of a Rank at a time; their numbers are below it.
const MaxWindows = 1024

// imageBytes is room for Programs, some hundreds of them. When it is full each gets
// memory of its own.
const imageBytes = 2 << 20

// Config is what a Rank is made of.
type Config struct {
	Rank   int
	Layout Layout // equal on all ranks
	Device Device
}

// Rank is one rank of one communicator on a GPU: its region, what it counts, and the
// regions of the others. It is safe for concurrent use, except that a Bound belongs
// to one goroutine at a time.
type Rank struct {
	cfg     Config
	region  device.Memory
	state   device.Memory
	windows device.Memory
	handle  []byte

	kernels map[string]Kernel

	mu     sync.Mutex
	peers  []device.Memory // by rank, nil for this one; nil until Map
	bases  []uintptr       // by rank
	images device.Memory
	used   int             // of images
	more   []device.Memory // for images that found no room
	closed bool

	ends ending
}

// ending is the word by which kernels end early, and the one that says why they did.
// Its lock is its own: freeing memory, under the Rank's, may wait for a kernel that
// Abort ends.
type ending struct {
	mu     sync.Mutex
	status Status // nil before New and after Close
	fault  uint32 // what it was at Close
}

func (e *ending) abort() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.status != nil {
		e.status.Abort()
	}
}

func (e *ending) why() uint32 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.status != nil {
		return e.status.Fault()
	}
	return e.fault
}

func (e *ending) close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.status == nil {
		return nil
	}
	s := e.status
	e.fault, e.status = s.Fault(), nil
	return s.Free()
}

// New allocates what a rank needs of its own, and loads all kernels: while kernels
// wait for each other it would be too late for either. The others reach the rank by
// Handle.
func New(cfg Config) (*Rank, error) {
	if err := cfg.Layout.Check(); err != nil {
		return nil, err
	}
	if cfg.Rank < 0 || cfg.Rank >= cfg.Layout.Ranks {
		return nil, fmt.Errorf("%w: rank %d of %d", goccl.ErrInvalid, cfg.Rank, cfg.Layout.Ranks)
	}
	r := &Rank{cfg: cfg, kernels: map[string]Kernel{}}
	if err := r.alloc(); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (r *Rank) alloc() (err error) {
	l, d := r.cfg.Layout, r.cfg.Device
	if r.ends.status, err = d.Status(); err != nil {
		return fmt.Errorf("rank %d: host memory for the abort word: %w", r.cfg.Rank, err)
	}
	for what, m := range map[string]struct {
		into  *device.Memory
		bytes int
	}{
		"region":  {&r.region, max(l.Bytes(), 1)}, // of one rank: nothing
		"state":   {&r.state, l.Channels * l.stateBytes()},
		"windows": {&r.windows, MaxWindows * r.windowBytes()},
		"images":  {&r.images, imageBytes},
	} {
		if *m.into, err = d.Alloc(m.bytes); err != nil {
			return fmt.Errorf("rank %d: %d bytes of device memory for its %s: %w", r.cfg.Rank, m.bytes, what, err)
		}
	}
	for _, name := range kernelNames() {
		if r.kernels[name], err = d.Kernel(name); err != nil {
			return err
		}
	}
	r.handle, err = d.Export(r.region)
	return err
}

// Handle returns what the other ranks need to map this one's region.
func (r *Rank) Handle() []byte { return r.handle }

// Map maps the regions of all ranks, of which handles are what Handle returned there.
// It must come before Bind, once.
func (r *Rank) Map(handles [][]byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return goccl.ErrClosed
	case r.peers != nil:
		return fmt.Errorf("%w: the regions are mapped already", goccl.ErrInvalid)
	case len(handles) != r.cfg.Layout.Ranks:
		return fmt.Errorf("%w: %d regions for %d ranks", goccl.ErrInvalid, len(handles), r.cfg.Layout.Ranks)
	}
	r.peers, r.bases = make([]device.Memory, len(handles)), make([]uintptr, len(handles))
	for q, h := range handles {
		if q == r.cfg.Rank {
			r.bases[q] = r.region.Addr()
			continue
		}
		m, err := r.cfg.Device.Import(h)
		if err != nil {
			return fmt.Errorf("rank %d maps the region of rank %d: %w", r.cfg.Rank, q, err)
		}
		r.peers[q], r.bases[q] = m, m.Addr()
		if m.Bytes() < r.cfg.Layout.Bytes() {
			return fmt.Errorf("%w: the region of rank %d has %d bytes, that of rank %d has %d: use one release and the same settings everywhere",
				goccl.ErrMismatch, q, m.Bytes(), r.cfg.Rank, r.cfg.Layout.Bytes())
		}
	}
	return nil
}

// windowBytes returns an entry of the table of windows: length, then addresses.
func (r *Rank) windowBytes() int { return 8 * (1 + r.cfg.Layout.Ranks) }

// SetWindow makes window number id known to kernels: so many bytes at addrs, by
// rank, as this rank maps them. 0 bytes forget it. No operation may use the window
// while it changes.
func (r *Rank) SetWindow(id uint32, addrs []uintptr, bytes int64) error {
	if id >= MaxWindows || len(addrs) != r.cfg.Layout.Ranks || bytes < 0 {
		return fmt.Errorf("%w: window %d of %d bytes on %d ranks; there are %d windows and %d ranks", goccl.ErrInvalid,
			id, bytes, len(addrs), MaxWindows, r.cfg.Layout.Ranks)
	}
	b := binary.LittleEndian.AppendUint64(nil, uint64(bytes))
	for _, a := range addrs {
		b = binary.LittleEndian.AppendUint64(b, uint64(a))
	}
	return r.cfg.Device.Write(r.windows.Addr()+uintptr(int(id)*r.windowBytes()), b)
}

// Bind makes p ready to be launched: encodes and uploads it. It needs no peer, and
// waits for no kernel as long as there is room for images.
func (r *Rank) Bind(p *plan.Program) (*Bound, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return nil, goccl.ErrClosed
	case r.peers == nil:
		return nil, fmt.Errorf("%w: Bind before Map", goccl.ErrInvalid)
	case p.Rank != r.cfg.Rank:
		return nil, fmt.Errorf("%w: the Program of rank %d on rank %d", goccl.ErrInvalid, p.Rank, r.cfg.Rank)
	}
	m, err := Encode(p, r.cfg.Layout, r.bases)
	if err != nil {
		return nil, err
	}
	fuse(p, r.cfg.Layout, r.bases, flagMask, m)
	return r.upload(p, m)
}

func (r *Rank) upload(p *plan.Program, m *Image) (*Bound, error) {
	if m.fused != nil {
		return newBound(r, p, m, 0)
	}
	addr, err := r.place(len(m.Bytes))
	if err != nil {
		return nil, fmt.Errorf("%d bytes of device memory for a Program: %w", len(m.Bytes), err)
	}
	if err := r.cfg.Device.Write(addr, m.Bytes); err != nil {
		return nil, err
	}
	return newBound(r, p, m, addr)
}

// place returns memory for an image.
func (r *Rank) place(bytes int) (uintptr, error) {
	if r.used+bytes <= r.images.Bytes() {
		at := r.images.Addr() + uintptr(r.used)
		r.used += (bytes + 127) / 128 * 128
		return at, nil
	}
	m, err := r.cfg.Device.Alloc(bytes)
	if err != nil {
		return 0, err
	}
	r.more = append(r.more, m)
	return m.Addr(), nil
}

// Abort ends all kernels of this rank, now and later. Any goroutine may call it, at
// any time: while Close runs it ends the kernels that Close waits for, afterwards it
// does nothing.
func (r *Rank) Abort() { r.ends.abort() }

// Err reports why a kernel gave up, nil when none did; after Close, what it was then.
func (r *Rank) Err() error {
	switch f := r.ends.why(); f {
	case 0:
		return nil
	case abi.InterpFaultPlace:
		return fmt.Errorf("%w: a peer's buffer is in no window of this communicator", goccl.ErrMismatch)
	default:
		return fmt.Errorf("rank %d: the kernel gave up for reason %d", r.cfg.Rank, f)
	}
}

// Close frees everything. No kernel of this rank may run any more, and none of a
// rank that maps this one. It is idempotent.
func (r *Rank) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	var errs []error
	for _, m := range append(append(r.more, r.peers...), r.images, r.windows, r.state, r.region) {
		if m != nil {
			errs = append(errs, m.Free())
		}
	}
	return errors.Join(append(errs, r.ends.close())...)
}
