package comm_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm"
	"github.com/goccl/goccl/comm/exec"
	"github.com/goccl/goccl/comm/plan"
	"github.com/goccl/goccl/comm/transport"
	"github.com/goccl/goccl/comm/transport/inproc"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/device/host"
)

// gpu is a device whose memory is the host's and which calls itself another.
type gpu struct {
	*host.Device
	id device.ID
}

func (g gpu) ID() device.ID { return g.id }

// table is where the accelerators of a test meet: launch number i of a rank waits
// for launch number i of all ranks.
type table struct {
	mu      sync.Mutex
	changed *sync.Cond
	turns   map[int][]exec.Args // by launch, those of the ranks that have come
}

func newTable() *table {
	t := &table{turns: map[int][]exec.Args{}}
	t.changed = sync.NewCond(&t.mu)
	return t
}

// meet hands in what a rank launched and returns what all did, nil after an abort.
func (a *accelerator) meet(turn int, in exec.Args) []exec.Args {
	t := a.table
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turns[turn] = append(t.turns[turn], in)
	t.changed.Broadcast()
	for len(t.turns[turn]) < a.size && !a.aborted {
		t.changed.Wait()
	}
	if len(t.turns[turn]) < a.size {
		return nil
	}
	return t.turns[turn]
}

// accelerator adds floats, which is all that it can, on streams of package host.
type accelerator struct {
	dev     gpu
	table   *table
	rank    int
	size    int
	turn    int
	met     [][]byte
	bound   []plan.Key
	closed  bool
	aborted bool  // guarded by the table's lock
	unbound error // what Bind returns
}

var _ comm.Accelerator = (*accelerator)(nil)

func (a *accelerator) Device() device.Device     { return a.dev }
func (a *accelerator) Announce() ([]byte, error) { return fmt.Appendf(nil, "gpu %d", a.rank), nil }
func (a *accelerator) Meet(all [][]byte) error   { a.met = all; return nil }
func (a *accelerator) Limits() comm.Limits {
	return comm.Limits{Channels: 4, LL: 1 << 10, Simple: 4 << 10, ShotLL: 1 << 10, ShotSimple: 1 << 10}
}

func (a *accelerator) Bind(p *plan.Program) (comm.Launcher, error) {
	a.bound = append(a.bound, p.Key)
	return launcher{a}, a.unbound
}

func (a *accelerator) Abort() {
	a.table.mu.Lock()
	defer a.table.mu.Unlock()
	a.aborted = true
	a.table.changed.Broadcast()
}

func (a *accelerator) Close() error { a.closed = true; return nil }

type launcher struct{ a *accelerator }

func (l launcher) Launch(args *exec.Args, s device.Stream) error {
	in, turn := *args, l.a.turn
	l.a.turn++
	return s.(*host.Stream).Do(func() {
		all := l.a.meet(turn, in)
		if all == nil {
			return
		}
		sum := make([]float32, in.Unit/4)
		for _, x := range all {
			for i, v := range floats(x.In, x.Unit) {
				sum[i] += v
			}
		}
		// Nobody writes before all have read: inputs may be outputs.
		if l.a.meet(-1-turn, in) != nil {
			copy(floats(in.Out, in.Unit), sum)
		}
	})
}

func floats(addr uintptr, bytes int64) []float32 {
	return device.View[float32](device.FromPointer(addr, int(bytes/4), goccl.F32, device.ID{}, nil))
}

// rig is a communicator with an accelerator, a stream of the user and a buffer.
type rig struct {
	cs   []*comm.Communicator
	accs []*accelerator
	user []device.Stream
}

func newRig(t *testing.T, n int, set func(int, *comm.Config)) *rig {
	r := &rig{}
	tab := newTable()
	for q := range n {
		dev := gpu{host.Open(), device.ID{Kind: device.CUDA, Index: q}}
		r.accs = append(r.accs, &accelerator{dev: dev, table: tab, rank: q, size: n})
		s, err := dev.NewStream(0)
		require.NoError(t, err)
		r.user = append(r.user, s)
	}
	r.cs = world(t, n, func(q int, cfg *comm.Config) {
		cfg.Accelerator = r.accs[q]
		if set != nil {
			set(q, cfg)
		}
	})
	return r
}

// on makes memory of rank's device of v.
func (r *rig) on(rank int, v []float32) device.Buffer {
	b := device.SliceOf(v)
	b.Device = r.accs[rank].dev.id
	return b
}

func (r *rig) sum(rank int, b device.Buffer) comm.Pending {
	return r.cs[rank].Do(comm.Call{Coll: goccl.AllReduce, Op: goccl.Sum, Src: b, Dst: b, Stream: r.user[rank]})
}

func TestDeviceOperationsOrderAfterTheCaller(t *testing.T) {
	r := newRig(t, 3, nil)
	require.Equal(t, "gpu 2", string(r.accs[0].met[2]))
	for _, err := range each(r.cs, func(c *comm.Communicator) error {
		v := make([]float32, 5000)
		open := make(chan struct{})
		// The input is not there yet when the call is made.
		if err := r.user[c.Rank()].(*host.Stream).Do(func() {
			<-open
			for i := range v {
				v[i] = value(c.Rank(), i)
			}
		}); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		first, second := r.sum(c.Rank(), r.on(c.Rank(), v)), r.sum(c.Rank(), r.on(c.Rank(), v))
		if done, _ := first.Test(); done {
			return errors.New("it ended before its input was there")
		}
		close(open)
		if err := second.Wait(ctx); err != nil {
			return err
		}
		if done, err := first.Test(); !done || err != nil {
			return fmt.Errorf("the first ended after the second: %v %v", done, err)
		}
		for i := range v {
			if want := 3 * 6 * float32(i%17+1); v[i] != want {
				return fmt.Errorf("element %d: %v, want %v", i, v[i], want)
			}
		}
		return nil
	}) {
		require.NoError(t, err)
	}
	require.Len(t, r.accs[0].bound, 1, "equal calls have one Program")
}

func TestDeviceRefusals(t *testing.T) {
	r := newRig(t, 2, nil)
	b := r.on(0, []float32{1, 2})
	ctx := context.Background()
	call := comm.Call{Coll: goccl.AllReduce, Op: goccl.Sum, Src: b, Dst: b}
	err := r.cs[0].Do(call).Wait(ctx)
	require.ErrorIs(t, err, goccl.ErrInvalid)
	require.ErrorContains(t, err, "needs a stream")

	call.Stream = r.user[0]
	other := r.on(1, []float32{1, 2})
	call.Src, call.Dst = other, other
	require.ErrorContains(t, r.cs[0].Do(call).Wait(ctx), "cuda:1; this communicator's device is cuda:0")
	call.Src = b
	require.ErrorContains(t, r.cs[0].Do(call).Wait(ctx), "source on cuda:0 and destination on cuda:1")

	err = r.cs[0].Batch([]comm.Call{{Coll: goccl.SendRecv, Send: true, Root: 1, Src: b}}).Wait(ctx)
	require.ErrorIs(t, err, goccl.ErrUnsupported)

	host := device.SliceOf([]float32{1})
	mixed := []comm.Call{{Coll: goccl.SendRecv, Send: true, Root: 1, Src: host}, {Coll: goccl.SendRecv, Root: 1, Dst: b}}
	require.ErrorContains(t, r.cs[0].Batch(mixed).Wait(ctx), "call 1 of the batch has its buffers in memory of kind cuda, the first call of kind host")

	r.accs[0].unbound = errors.New("no memory for a Program")
	call = comm.Call{Coll: goccl.AllReduce, Op: goccl.Sum, Src: b, Dst: b, Stream: r.user[0]}
	require.ErrorContains(t, r.cs[0].Do(call).Wait(ctx), "no memory for a Program")

	plain := world(t, 2, nil)
	require.ErrorContains(t, plain[0].Do(call).Wait(ctx), "made without one")
}

// Host and device memory have one order of calls, and neither waits for the other.
func TestDeviceAndHostTogether(t *testing.T) {
	r := newRig(t, 2, nil)
	for _, err := range each(r.cs, func(c *comm.Communicator) error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		h, d := []float32{value(c.Rank(), 1)}, []float32{value(c.Rank(), 2)}
		away := r.sum(c.Rank(), r.on(c.Rank(), d))
		if err := c.AllReduce(device.SliceOf(h), device.SliceOf(h), goccl.Max).Wait(ctx); err != nil {
			return err
		}
		if err := away.Wait(ctx); err != nil {
			return err
		}
		if h[0] != value(1, 1) || d[0] != value(0, 2)+value(1, 2) {
			return fmt.Errorf("got %v and %v", h, d)
		}
		return nil
	}) {
		require.NoError(t, err)
	}
}

// A rank that fails ends the operations of all, which sit in kernels.
func TestFailureEndsDeviceOperations(t *testing.T) {
	r := newRig(t, 3, nil)
	errs := each(r.cs, func(c *comm.Communicator) error {
		if c.Rank() == 1 {
			time.Sleep(20 * time.Millisecond)
			c.Fail(errors.New("no more data"))
			<-c.Failed()
			return c.Err()
		}
		return r.sum(c.Rank(), r.on(c.Rank(), []float32{1})).Wait(context.Background())
	})
	sameFirstLine(t, []error{errs[0], errs[2]}, goccl.ErrAborted, "rank 1", "no more data")
	require.Equal(t, firstLine(errs[0]), firstLine(errs[1]))
	require.ErrorContains(t, r.sum(0, r.on(0, []float32{1})).Wait(context.Background()), "no more data")
}

func TestDeviceTimeoutNamesTheMissing(t *testing.T) {
	r := newRig(t, 3, func(_ int, cfg *comm.Config) { cfg.Timeout = 400 * time.Millisecond })
	errs := each(r.cs[:2], func(c *comm.Communicator) error {
		return r.sum(c.Rank(), r.on(c.Rank(), []float32{1, 2})).Wait(context.Background())
	})
	sameFirstLine(t, errs, goccl.ErrTimeout, "allreduce f32[2] sum", "missing rank 2")
}

// Ranks whose calls differ sit in kernels that do not fit each other.
func TestDeviceMismatchIsNamed(t *testing.T) {
	r := newRig(t, 2, nil)
	errs := each(r.cs, func(c *comm.Communicator) error {
		if c.Rank() == 1 { // it does not launch what rank 0 waits for
			b := device.SliceOf([]float32{1})
			return c.AllReduce(b, b, goccl.Sum).Wait(context.Background())
		}
		return r.sum(0, r.on(0, []float32{1, 2, 3})).Wait(context.Background())
	})
	sameFirstLine(t, errs, goccl.ErrMismatch, "f32[3]", "f32[1]")
}

func TestWaitForADeviceEndsWithItsContext(t *testing.T) {
	r := newRig(t, 2, nil)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	v := []float32{1}
	w := r.sum(0, r.on(0, v))
	require.ErrorIs(t, w.Wait(ctx), context.DeadlineExceeded)
	other := []float32{2}
	require.NoError(t, r.sum(1, r.on(1, other)).Wait(context.Background()))
	require.NoError(t, w.Wait(context.Background()), "the operation went on")
	require.Equal(t, float32(3), v[0])
}

func TestDeviceOnOneRankIsNamed(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	acc := &accelerator{dev: gpu{host.Open(), device.ID{Kind: device.CUDA}}, table: newTable(), size: 2}
	_, err := comm.InitAll(ctx, 2, func(r int, cfg *comm.Config) {
		cfg.Transports = []transport.Transport{inproc.New()}
		if r == 0 {
			cfg.Accelerator = acc
		}
	})
	require.ErrorIs(t, err, goccl.ErrMismatch)
	require.ErrorContains(t, err, "rank 0 (")
	require.ErrorContains(t, err, "has a device and rank 1 (")
	require.True(t, acc.closed)
}

// captured is a stream whose work goes into a graph.
type captured struct {
	device.Stream
	on bool
}

func (c *captured) Capturing() (bool, error) { return c.on, nil }

// An operation that is captured ends with the capture, and not by its event, which
// cannot be asked.
func TestCapturedOperationEndsWithTheCapture(t *testing.T) {
	r := newRig(t, 2, nil)
	s := &captured{Stream: r.user[0], on: true}
	v := []float32{1}
	b := r.on(0, v)
	w := r.cs[0].Do(comm.Call{Coll: goccl.AllReduce, Op: goccl.Sum, Src: b, Dst: b, Stream: s})
	done, err := w.Test()
	require.NoError(t, err)
	require.False(t, done)
	s.on = false
	require.NoError(t, w.Wait(context.Background()), "though rank 1 has not come")
	require.NoError(t, r.sum(1, r.on(1, []float32{2})).Wait(context.Background()))
}

func TestDeviceOfOneRank(t *testing.T) {
	r := newRig(t, 1, nil)
	require.Len(t, r.accs[0].met, 1)
	v := []float32{3}
	require.NoError(t, r.sum(0, r.on(0, v)).Wait(context.Background()))
	require.Equal(t, float32(3), v[0])
}
