package gputest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/exec"
	"github.com/goccl/goccl/comm/exec/gpu"
	"github.com/goccl/goccl/comm/graph"
	"github.com/goccl/goccl/comm/plan"
	"github.com/goccl/goccl/comm/plan/algo"
	"github.com/goccl/goccl/device"
)

// Machine is where ranks run.
type Machine interface {
	Device(rank int) gpu.Device
	Stream(rank int) device.Stream
	// Read copies device memory to b. All that was queued has run.
	Read(rank int, addr uintptr, b []byte)
	// Run runs what was queued to its end. A machine that has a choice takes seed for
	// it.
	Run(seed uint64) error
	// Threads lists sizes of blocks that kernels can have, among them small ones.
	Threads() []int
}

// Small is a layout for n ranks whose slots are soon used again.
func Small(n int) gpu.Layout {
	return gpu.Layout{Ranks: n, Channels: 3, Slots: 2, LL: 512, Simple: 1024, ScratchLL: 1024, ScratchSimple: 2048}
}

// World is the ranks of a Machine, beside as many host executors.
type World struct {
	T       testing.TB
	Layout  gpu.Layout
	Machine Machine
	Ranks   []*gpu.Rank
	Graph   *graph.Graph
	// Build makes a rank's Program; algo.Build by default. Bind binds it.
	Build func(k plan.Key, rank int) *plan.Program
	Bind  func(r *gpu.Rank, p *plan.Program) (*gpu.Bound, error)
	// Unsure are ranks whose results do not count.
	Unsure map[int]bool
	// Ahead, when it is set, is called for all ranks before Around is for the first:
	// what may wait for a device belongs here, for between the launches of ranks that
	// wait for each other it would wait for ever.
	Ahead func(rank int, launch func() error, times int) error
	// Around makes all launches of an operation on a rank: Op.Repeat calls of launch in
	// all.
	Around func(rank int, launch func() error, times int) error

	host    *hosts
	bound   map[plan.Key][]*gpu.Bound
	windows uint32
	checks  []func()
}

// New makes the ranks of l on m, which are closed when t ends.
func New(t testing.TB, l gpu.Layout, m Machine) *World {
	t.Helper()
	w := newWorld(t, l, m)
	handles := make([][]byte, l.Ranks)
	for r := range l.Ranks {
		w.rank(r)
		handles[r] = w.Ranks[r].Handle()
	}
	for _, r := range w.Ranks {
		require.NoError(t, r.Map(handles))
	}
	w.endWhenFailed()
	return w
}

// endWhenFailed stops kernels that may hang, so that memory can be freed: freeing
// waits for them.
func (w *World) endWhenFailed() {
	w.T.Cleanup(func() {
		if !w.T.Failed() {
			return
		}
		for _, r := range w.Ranks {
			if r != nil {
				r.Abort()
			}
		}
		_ = w.Machine.Run(0) // the test has failed already
	})
}

// NewOne makes one rank of l on m; the others are in other processes, which do the
// same operations. exchange returns the handles of all ranks.
func NewOne(t testing.TB, l gpu.Layout, m Machine, rank int, exchange func(own []byte) [][]byte) *World {
	t.Helper()
	w := newWorld(t, l, m)
	w.rank(rank)
	require.NoError(t, w.Ranks[rank].Map(exchange(w.Ranks[rank].Handle())))
	w.endWhenFailed()
	return w
}

func newWorld(t testing.TB, l gpu.Layout, m Machine) *World {
	w := &World{T: t, Layout: l, Machine: m, Ranks: make([]*gpu.Rank, l.Ranks), Graph: Mapped(t, l.Ranks), Unsure: map[int]bool{}, host: newHosts(t, l),
		bound: map[plan.Key][]*gpu.Bound{}}
	w.Build = func(k plan.Key, rank int) *plan.Program {
		p, err := algo.Build(k, rank, w.Graph)
		require.NoError(t, err)
		return p
	}
	w.Bind = (*gpu.Rank).Bind
	w.Around = func(_ int, launch func() error, times int) error {
		for range times {
			if err := launch(); err != nil {
				return err
			}
		}
		return nil
	}
	return w
}

func (w *World) rank(r int) {
	w.T.Helper()
	k, err := gpu.New(gpu.Config{Rank: r, Layout: w.Layout, Device: w.Machine.Device(r)})
	require.NoError(w.T, err)
	w.Ranks[r] = k
	w.T.Cleanup(func() { require.NoError(w.T, k.Close()) })
}

// Op is one operation.
type Op struct {
	Key       plan.Key
	Elems     int // of a unit
	In, Out   int // bytes before the buffers, from a multiple of 16
	InPlace   bool
	Scale     float32 // not 0: PreMulSum
	From, To  int     // of a SendRecv
	Threads   int     // of a block; 0: as the size asks
	Repeat    int     // times that it is launched, 0: once
	PlainBits bool    // all patterns are equally likely
}

// String says what it is.
func (o Op) String() string {
	s := fmt.Sprintf("%v elems %d at +%d +%d", o.Key, o.Elems, o.In, o.Out)
	if o.InPlace {
		s += " in place"
	}
	return s
}

// units returns how many units input and output of a collective have.
func units(c goccl.Collective, n int) (in, out int) {
	switch c {
	case goccl.AllGather, goccl.Gather:
		return 1, n
	case goccl.ReduceScatter, goccl.Scatter:
		return n, 1
	case goccl.AllToAll:
		return n, n
	}
	return 1, 1
}

// keys returns the key of every rank; a rank that does not take part has Coll 0.
func (o Op) keys(n int) []plan.Key {
	ks := make([]plan.Key, n)
	for r := range ks {
		ks[r] = o.Key
		if o.Key.Coll == goccl.SendRecv {
			ks[r] = plan.Key{}
			if r == o.From || r == o.To {
				ks[r] = o.Key
				ks[r].Send, ks[r].Root = r == o.From, int32(o.From+o.To-r)
			}
		}
	}
	return ks
}

// buffers are input and output of one rank: both in one piece of memory when in
// place.
type buffers struct {
	mem     []byte
	in, out int // offsets
	nin     int
	nout    int
}

func (w *World) buffers(o Op, rng *rand.Rand) []buffers {
	unit := o.Elems * o.Key.DType.Size()
	ni, no := units(o.Key.Coll, w.Layout.Ranks)
	bs := make([]buffers, w.Layout.Ranks)
	for r := range bs {
		b := buffers{nin: ni * unit, nout: no * unit}
		b.in = 32 + o.In
		b.out = b.in + (b.nin+63)/32*32 - o.In + o.Out
		if o.InPlace {
			switch o.Key.Coll {
			case goccl.AllGather, goccl.Gather:
				b.out = b.in
				b.in += r * unit
			case goccl.ReduceScatter, goccl.Scatter:
				b.out = b.in + r*unit
			default:
				b.out = b.in
			}
		}
		b.mem = make([]byte, max(b.in+b.nin, b.out+b.nout)+40)
		for i := range b.mem {
			b.mem[i] = 0xa5
		}
		fill(o, b.mem[b.in:b.in+b.nin], rng)
		bs[r] = b
	}
	return bs
}

// fill writes elements: numbers near one, tiny and huge ones, infinities and NaNs.
func fill(o Op, b []byte, rng *rand.Rand) {
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	if o.PlainBits {
		return
	}
	size := o.Key.DType.Size()
	for i := size - 1; i < len(b); i += size {
		switch rng.IntN(12) {
		case 0: // any bits
		case 1: // tiny
			b[i] &= 0x80
		case 2: // infinite or NaN
			b[i] |= 0x7f
			b[max(i-1, 0)] |= 0x80
		default: // near one
			b[i] = b[i]&0x80 | 0x3f
		}
	}
}

// Do queues an operation on all ranks that are here and remembers what must come
// out.
func (w *World) Do(o Op, rng *rand.Rand) {
	w.T.Helper()
	n, unit := w.Layout.Ranks, o.Elems*o.Key.DType.Size()
	bs, keys := w.buffers(o, rng), o.keys(n)
	mems, addrs, bounds := make([]device.Memory, n), make([]uintptr, n), make([]*gpu.Bound, n)
	for r, k := range w.Ranks {
		if k == nil {
			continue
		}
		d := w.Machine.Device(r)
		m, err := d.Alloc(len(bs[r].mem))
		require.NoError(w.T, err)
		require.NoError(w.T, d.Write(m.Addr(), bs[r].mem))
		mems[r], addrs[r] = m, m.Addr()
		// All that may wait for a device comes before the first launch.
		if keys[r].Coll != 0 {
			bounds[r] = w.bind(keys[r], r)
			require.NoError(w.T, bounds[r].SetThreads(o.Threads))
		}
	}
	w.windows++ // one for each operation
	window := w.windows % gpu.MaxWindows
	for r, k := range w.Ranks {
		if k != nil && keys[r].Window == plan.WindowBoth {
			require.NoError(w.T, k.SetWindow(window, addrs, int64(len(bs[0].mem))))
		}
	}
	launches := make([]func() error, n)
	for r, b := range bounds {
		if b == nil {
			continue
		}
		a := exec.Args{In: addrs[r] + uintptr(bs[r].in), Out: addrs[r] + uintptr(bs[r].out), Unit: int64(unit), Scale: o.Scale, Scaled: o.Scale != 0,
			InAt: exec.Place{Window: window, Off: int64(bs[r].in)}, OutAt: exec.Place{Window: window, Off: int64(bs[r].out)}}
		launches[r] = func() error { return b.Launch(&a, w.Machine.Stream(r)) }
		if w.Ahead != nil {
			require.NoError(w.T, w.Ahead(r, launches[r], max(o.Repeat, 1)), "%v", o)
		}
	}
	for r, launch := range launches {
		if launch != nil {
			require.NoError(w.T, w.Around(r, launch, max(o.Repeat, 1)), "%v", o)
		}
	}
	for range max(o.Repeat, 1) {
		w.expect(o, keys, bs, unit)
	}
	w.checks = append(w.checks, func() {
		for r, m := range mems {
			if m == nil {
				continue
			}
			got := make([]byte, len(bs[r].mem))
			w.Machine.Read(r, addrs[r], got)
			if !w.Unsure[r] && string(got) != string(bs[r].mem) {
				w.differ(o, r, bs[r], got)
			}
			require.NoError(w.T, m.Free())
		}
	})
}

func (w *World) differ(o Op, r int, b buffers, got []byte) {
	w.T.Helper()
	for i := range got {
		if got[i] != b.mem[i] {
			size := o.Key.DType.Size()
			e := (i - b.out) / size
			lo := b.out + e*size
			if i < b.out || lo+size > len(got) {
				require.FailNow(w.T, "wrote outside", "%v: rank %d changed byte %d, %d before its output", o, r, i, b.out-i)
			}
			require.Equal(w.T, fmt.Sprintf("%x", b.mem[lo:lo+size]), fmt.Sprintf("%x", got[lo:lo+size]), "%v: rank %d has another element %d than the host", o, r, e)
		}
	}
}

// expect lets the host executor do the operation in bs.
func (w *World) expect(o Op, keys []plan.Key, bs []buffers, unit int) {
	in, out := make([][]byte, w.Layout.Ranks), make([][]byte, w.Layout.Ranks)
	for r, b := range bs {
		// The host executor's memory is aligned to elements as the device's is.
		in[r], out[r] = b.mem[b.in:b.in+b.nin], b.mem[b.out:b.out+b.nout]
	}
	w.host.run(w.Build, keys, in, out, int64(unit), o.Scale, o.Scale != 0)
}

func (w *World) bind(k plan.Key, r int) *gpu.Bound {
	w.T.Helper()
	if w.bound[k] == nil {
		w.bound[k] = make([]*gpu.Bound, w.Layout.Ranks)
	}
	if w.bound[k][r] == nil {
		var err error
		w.bound[k][r], err = w.Bind(w.Ranks[r], w.Build(k, r))
		require.NoError(w.T, err)
	}
	return w.bound[k][r]
}

// Run runs what was queued and checks all results.
func (w *World) Run(seed uint64) {
	w.T.Helper()
	require.NoError(w.T, w.Machine.Run(seed), "seed %d", seed)
	w.Check()
}

// Check checks the results of what has run.
func (w *World) Check() {
	w.T.Helper()
	for _, c := range w.checks {
		c()
	}
	w.checks = nil
}
