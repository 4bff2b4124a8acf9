package comm

import (
	"errors"
	"fmt"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/exec"
	"github.com/goccl/goccl/comm/graph"
	"github.com/goccl/goccl/comm/plan"
	"github.com/goccl/goccl/comm/plan/algo"
	"github.com/goccl/goccl/device"
)

// devices is the engine for memory of a device. It does not step operations: Start
// queues each on one stream, in the order of the calls, and the device does the
// rest. What remains on the host is to notice the end.
//
// Operations on host memory and on device memory have one order of calls and one
// history of signatures, but do not wait for each other. Guarded by engine.mu.
type devices struct {
	acc    Accelerator
	stream device.Stream
	graph  *graph.Graph
	bound  map[plan.Key]Launcher
	head   *Task // started and not known to have ended, oldest first
	tail   *Task
}

// priority of the stream that operations run on: before the computing that they
// overlap with, since others wait for them.
const priority = -1

// meetOnDevice connects the accelerators of all ranks, where they have one. Ranks on
// several hosts are an error that names two.
func (c *Communicator) meetOnDevice() error {
	acc := c.acc
	for r := range c.peers { // one without would not come to the meeting
		if has := c.peers[r].Blob[announced] != nil; has != (acc != nil) {
			with, without := c.rank, r
			if has {
				with, without = r, c.rank
			}
			return fmt.Errorf("%w: rank %d (%s) has a device and rank %d (%s) has none: give one to all ranks, or to none",
				goccl.ErrMismatch, with, c.address(with), without, c.address(without))
		}
	}
	if acc == nil {
		return nil
	}
	blobs := make([][]byte, c.size)
	for r := range c.peers {
		p := &c.peers[r]
		blobs[r] = p.Blob[announced]
		if hostOf(p) != hostOf(&c.peers[c.rank]) && (p.HostID != 0 || p.Process != c.peers[c.rank].Process) {
			return fmt.Errorf("%w: ranks %d and %d are on different hosts (%s, %s), and device memory is not moved between hosts by this backend; use backend nccl",
				goccl.ErrUnsupported, c.rank, r, c.address(c.rank), c.address(r))
		}
	}
	if err := acc.Meet(blobs); err != nil {
		return err
	}
	return c.readyDevice()
}

// aloneOnDevice is meetOnDevice for a communicator of one rank.
func (c *Communicator) aloneOnDevice() error {
	own, err := c.acc.Announce()
	if err != nil {
		return err
	}
	if err := c.acc.Meet([][]byte{own}); err != nil {
		return err
	}
	return c.readyDevice()
}

// announced is the name under which a rank says what its accelerator announces.
const announced = "accelerator"

// readyDevice makes the engine for the connected accelerator.
func (c *Communicator) readyDevice() error {
	s, err := c.acc.Device().NewStream(priority)
	if err != nil {
		return err
	}
	places := make([]graph.Place, c.size)
	for r := range places {
		places[r].Mapped = true
	}
	g, err := graph.New(places)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onDevice = &devices{acc: c.acc, stream: s, graph: g, bound: map[plan.Key]Launcher{}}
	return nil
}

// kind returns where the buffers of a call lie.
func (c *Call) kind() device.Kind {
	call := c
	if c.Coll == 0 && len(c.Batch) > 0 {
		call = &c.Batch[0]
	}
	if call.Coll == goccl.Barrier {
		return device.Host
	}
	return call.unitBuffer().Device.Kind
}

// startOnDevice queues t on the device. Called with mu held.
func (c *Communicator) startOnDevice(t *Task) error {
	d := c.onDevice
	switch f := c.failed.Load(); {
	case f != nil:
		return f.err
	case c.closed:
		return goccl.ErrClosed
	case d == nil:
		return fmt.Errorf("%w: %s in memory of a device; this communicator was made without one", goccl.ErrUnsupported, t.describe())
	case t.Coll == 0:
		return fmt.Errorf("%w: %s in memory of a device: several transfers as one operation; use backend nccl", goccl.ErrUnsupported, t.describe())
	case t.Stream == nil:
		return fmt.Errorf("%w: %s in memory of a device needs a stream to order after", goccl.ErrInvalid, t.describe())
	}
	for _, b := range []*device.Buffer{&t.Src, &t.Dst} {
		if b.Count > 0 && b.Device != d.acc.Device().ID() {
			return fmt.Errorf("%w: a buffer on %v; this communicator's device is %v", goccl.ErrInvalid, b.Device, d.acc.Device().ID())
		}
	}
	l, err := d.prepare(c, t)
	if err != nil {
		return err
	}
	if err := d.launch(t, l); err != nil {
		return err
	}
	c.number(t, t.Coll != goccl.SendRecv)
	t.sig = sign(&t.part, c.history)
	if t.seq == 0 {
		t.sig = sign(&t.part, 0)
	}
	c.note(t)
	return nil
}

// prepare chooses and binds the Program of t.
func (d *devices) prepare(c *Communicator, t *Task) (Launcher, error) {
	p, call := &t.part, &t.Call
	u := call.unitBuffer()
	unit := int64(u.Bytes())
	if call.Coll == goccl.AllToAll {
		unit /= int64(c.size)
	}
	p.args = exec.Args{In: call.Src.Addr, Out: call.Dst.Addr, Unit: unit}
	p.args.Scale, p.args.Scaled = call.Op.Scale()
	key, err := d.choose(c, call, u.DType, unit)
	if err != nil {
		return nil, err
	}
	p.key, p.sign = key, signature(&key, u.DType, unit)
	if l := d.bound[key]; l != nil {
		return l, nil
	}
	prog, err := algo.Build(key, c.rank, d.graph)
	if err != nil {
		return nil, err
	}
	l, err := d.acc.Bind(prog)
	if err != nil {
		return nil, err
	}
	d.bound[key] = l
	return l, nil
}

// choose makes the key of a call.
func (d *devices) choose(c *Communicator, call *Call, dt goccl.DType, unit int64) (plan.Key, error) {
	lim := d.acc.Limits()
	if call.Coll == goccl.SendRecv {
		if call.Root == c.rank {
			return plan.Key{}, fmt.Errorf("%w: rank %d sends to itself; copy instead", goccl.ErrInvalid, c.rank)
		}
		proto, channels := byPieces(unit, 1, lim.Channels)
		key := plan.Key{Coll: goccl.SendRecv, Algo: goccl.Direct, Proto: proto, DType: goccl.U8, Channels: uint8(channels),
			Send: call.Send, Root: int32(call.Root), Chunk: uint32(lim.Simple)}
		if proto == goccl.LL {
			key.Chunk = uint32(lim.LL)
		}
		return key, nil
	}
	r := Request{Coll: call.Coll, Bytes: unit, DType: dt, Op: call.Op.Kind(), Ranks: c.size, Mapped: true, Device: device.CUDA,
		MaxOneShot: lim.shot(goccl.LL), MaxChunkLL: lim.LL, MaxChunkSimple: lim.Simple, MaxChannels: lim.Channels, Hosts: 1, RanksPerHost: c.size}
	switch call.Coll {
	case goccl.AllGather, goccl.ReduceScatter, goccl.AllToAll:
		r.Bytes *= int64(c.size)
	}
	dec, err := c.tuner.Choose(r)
	if err != nil {
		return plan.Key{}, fmt.Errorf("choosing an algorithm: %w", err)
	}
	return d.key(call, dt, unit, dec)
}

// key is the Program for a decision, within what the accelerator can.
func (d *devices) key(call *Call, dt goccl.DType, unit int64, dec Decision) (plan.Key, error) {
	lim := d.acc.Limits()
	most := lim.Simple
	if dec.Proto == goccl.LL {
		most = lim.LL
	}
	channels := min(max(dec.Channels, 1), lim.Channels)
	if dec.Algo == goccl.OneShot {
		if most = lim.ShotSimple; dec.Proto == goccl.LL {
			most = lim.ShotLL
		}
		if unit > lim.shot(dec.Proto) {
			return plan.Key{}, fmt.Errorf("%w: %v by %v of %d bytes; at most %d (a forced algorithm? see GOCCL_ALGO)", goccl.ErrUnsupported, call.Coll, dec.Algo, unit, lim.shot(dec.Proto))
		}
		channels = max(channels, int((unit+most-1)/most))
	}
	chunk := dec.Chunk
	if chunk <= 0 || chunk > most {
		chunk = most
	}
	key := plan.Key{Coll: call.Coll, Algo: dec.Algo, Proto: dec.Proto, DType: dt, Channels: uint8(channels), Chunk: uint32(chunk)}
	if call.Coll.Rooted() {
		key.Root = int32(call.Root)
	}
	if call.Coll.Reduces() {
		key.Op = call.Op.Kind()
	}
	return key, nil
}

// capturer is a stream whose work can be captured into a graph. An operation that is
// captured does not run, and its event cannot be asked: for the host it has ended
// when the capture has. Until then Join makes other streams wait for it, as they must
// before the end of the capture.
type capturer interface{ Capturing() (bool, error) }

// launch queues t after the work of the caller's stream.
func (d *devices) launch(t *Task, l Launcher) error {
	t.capture = nil
	if s, ok := t.Stream.(capturer); ok {
		switch captured, err := s.Capturing(); {
		case err != nil:
			return err
		case captured:
			t.capture = s
		}
	}
	before, err := t.Stream.Record()
	if err != nil {
		return err
	}
	err = d.stream.WaitEvent(before)
	before.Release()
	if err == nil {
		err = l.Launch(&t.part.args, d.stream)
	}
	if err != nil {
		return err
	}
	if t.end, err = d.stream.Record(); err != nil {
		return err
	}
	t.err, t.done, t.broken, t.next = nil, false, false, nil
	if d.tail == nil {
		d.head = t
	} else {
		d.tail.next = t
	}
	d.tail = t
	return nil
}

// ended reports whether t has ended on the device.
func (d *devices) ended(t *Task) (bool, error) {
	if t.capture != nil {
		captured, err := t.capture.Capturing()
		return !captured, err
	}
	return t.end.Done()
}

// pop ends t, the oldest. Called with mu held.
func (d *devices) pop(t *Task, err error) {
	t.end.Release()
	t.end, t.capture = nil, nil
	t.over(err)
	t.done = true
	if d.head = t.next; d.head == nil {
		d.tail = nil
	}
}
