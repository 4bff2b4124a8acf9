package gpu

import (
	"fmt"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/exec"
	"github.com/goccl/goccl/comm/plan"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/device/kernels/abi"
)

// Bound is a Program ready to be launched, for any size and any buffers. It belongs
// to one goroutine at a time, and lives as long as its Rank.
type Bound struct {
	Prog   *plan.Program
	image  *Image
	kernel Kernel
	warp   int // threads of a warp
	loops  bool
	fixed  int              // threads of a block; 0: as the size asks
	args   abi.InterpArgs   // what is the same in all launches
	fused  *abi.InterpFused // the same, when a fused kernel does it
	call   abi.InterpCall   // what is not
	ready  [len(blockSizes)]Launch
	other  Launch // of fixed
}

// blockSizes are the threads of a block that launches choose from.
var blockSizes = [...]int{64, 128, 256, int(abi.InterpMaxThreads)}

func newBound(r *Rank, p *plan.Program, m *Image, addr uintptr) (*Bound, error) {
	b := &Bound{Prog: p, image: m, kernel: r.kernels[m.Kernel], warp: r.cfg.Device.Warp(), loops: p.Loops()}
	b.args = abi.InterpArgs{Image: uint64(addr), State: uint64(r.state.Addr()), Status: uint64(r.ends.status.Addr()),
		Windows: uint64(r.windows.Addr()), NWindows: MaxWindows}
	if m.fused != nil {
		f := *m.fused
		f.State, f.Status = b.args.State, b.args.Status
		b.fused = &f
	}
	for i, s := range blockSizes {
		if s < b.warp*m.lanes {
			continue // Threads does not choose it
		}
		var err error
		if b.ready[i], err = b.prepare(s); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// Threads returns how many threads a block has for units of the given bytes.
func (b *Bound) Threads(unit int64) int {
	if b.fixed > 0 {
		return b.fixed
	}
	g := &b.Prog.Geom
	_, n := g.Span(unit, 0, len(b.Prog.Rows))
	_, n = g.Chunk(n, 0, 0)
	// By LL a thread moves a unit of 8 bytes, by Simple some vectors of 16, and one
	// warp of a lane only posts.
	want := n / 8
	if b.image.Simple {
		want = n/64 + int64(b.warp)
	}
	want *= int64(b.image.lanes)
	for _, s := range blockSizes[:len(blockSizes)-1] {
		if want <= int64(s) && s >= 2*b.warp*b.image.lanes {
			return s
		}
	}
	return blockSizes[len(blockSizes)-1]
}

// SetThreads fixes the threads of a block, for measurements; 0 leaves them to the
// size. It must be a multiple of a warp, one warp at least for each lane.
func (b *Bound) SetThreads(n int) (err error) {
	b.fixed = n
	if n > 0 {
		b.other, err = b.prepare(n)
	}
	return err
}

// prepare makes the launch with so many threads ready. A driver may wait for the
// device meanwhile, so it has no place between launches that wait for each other.
func (b *Bound) prepare(threads int) (Launch, error) {
	x := b.args
	args, shared := abi.Bytes(&x), 0
	if b.fused != nil {
		args = abi.Bytes(b.fused)
	} else {
		shared = b.image.plan(&x, threads/b.warp)
	}
	l, err := b.kernel.Prepare(b.image.Channels, threads, shared, len(args))
	if err != nil {
		return nil, fmt.Errorf("%v: %w", b.Prog.Key, err)
	}
	copy(l.Args(), args)
	return l, nil
}

// prepared returns the launch with so many threads.
func (b *Bound) prepared(threads int) Launch {
	for i, s := range blockSizes {
		if s == threads && b.fixed == 0 {
			return b.ready[i]
		}
	}
	return b.other
}

// Launch queues the operation on s and does not wait for it. a is as for the host
// executor; its addresses are of device memory and aligned to elements. The buffers
// stay until the operation has ended. After Abort it does nothing, on the device.
func (b *Bound) Launch(a *exec.Args, s device.Stream) error {
	g, rows := &b.Prog.Geom, len(b.Prog.Rows)
	if _, n := g.Span(a.Unit, 0, rows); a.Unit < 0 || !b.loops && n > g.ChunkBytes {
		return fmt.Errorf("%w: %v serves one chunk in each channel, %d bytes; %d given", goccl.ErrInvalid, b.Prog.Key, g.ChunkBytes*int64(rows), a.Unit)
	}
	x := &b.call
	x.In, x.Out, x.Unit = uint64(a.In), uint64(a.Out), uint64(a.Unit)
	x.InPlace, x.OutPlace = placeWord(a.InAt), placeWord(a.OutAt)
	grains := (a.Unit + g.Grain - 1) / g.Grain
	x.Per, x.Extra = uint64(grains/int64(rows)), uint32(grains%int64(rows))
	x.Scale, x.Scaled = a.Scale, 0
	if a.Scaled {
		x.Scaled = 1
	}
	l := b.prepared(b.Threads(a.Unit))
	copy(l.Args(), abi.Bytes(x)) // which begins the arguments
	return l.Queue(s)
}

// placeWord writes a place as peers read it.
func placeWord(p exec.Place) uint64 { return uint64(p.Window)<<abi.InterpPlaceOffset | uint64(p.Off) }
