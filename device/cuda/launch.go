package cuda

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/internal/dl"
)

// Attributes of a launch, as the driver numbers them.
const (
	launchCooperative = 2
	launchCluster     = 4
	launchOverlap     = 6
	maxAttributes     = 3
)

// Keys of the list by which arguments are passed as one block.
const (
	extraEnd    = 0
	extraBuffer = 1
	extraBytes  = 2
)

// maxArgBytes is what every GPU takes; newer ones take more.
const maxArgBytes = 4096

// Shape is how a kernel is launched. Zeroes in Grid and Block mean 1.
type Shape struct {
	Grid        [3]int // blocks
	Block       [3]int // threads of a block
	Shared      int    // bytes of dynamic shared memory of a block
	Cluster     int    // blocks of a cluster along x; 0: no clusters
	Cooperative bool   // all blocks run at once, or the launch is refused
	// Overlap lets the kernel begin while the kernel before it in the stream still
	// runs, once that one has allowed it. It must wait for it in the kernel
	// (griddepcontrol.wait) before it touches what it shares with it.
	Overlap bool
}

// Launch is one launch made ready: shape and arguments, to be queued again and
// again without an allocation. It belongs to one goroutine at a time; the driver
// has read it when Section.Launch returns.
type Launch struct {
	kernel *Kernel
	config launchConfig
	attrs  [maxAttributes]launchAttribute
	args   []byte
	bytes  uintptr    // of args, where the driver looks for it
	extra  [5]uintptr // the list of keys and values
}

// NewLaunch makes a launch of k with argBytes of arguments, all zero; Put64 and
// its kin set them. Arguments lie one after the other, each at a multiple of its
// alignment, as in a C structure.
func (k *Kernel) NewLaunch(shape Shape, argBytes int) (*Launch, error) {
	if err := k.check(shape, argBytes); err != nil {
		return nil, k.dev.wrap(fmt.Errorf("kernel %s: %w", k.name, err))
	}
	l := &Launch{kernel: k, args: make([]byte, argBytes), bytes: uintptr(argBytes)}
	l.config.grid, l.config.block, l.config.shared = counts(shape.Grid), counts(shape.Block), uint32(shape.Shared)
	if shape.Cooperative {
		l.attribute(launchCooperative, 1)
	}
	if shape.Cluster > 0 {
		l.attribute(launchCluster, uint32(shape.Cluster), 1, 1)
	}
	if shape.Overlap {
		l.attribute(launchOverlap, 1)
	}
	// The addresses below are of this object: it is on the heap and stays there.
	l.config.attrs = dl.Addr(uintptr(unsafe.Pointer(&l.attrs[0])))
	if argBytes > 0 {
		l.extra = [5]uintptr{extraBuffer, dl.Addr(uintptr(unsafe.Pointer(&l.args[0]))), extraBytes, dl.Addr(uintptr(unsafe.Pointer(&l.bytes))), extraEnd}
	}
	return l, nil
}

func (k *Kernel) check(s Shape, argBytes int) error {
	threads := 1
	for i := range 3 {
		if s.Grid[i] < 0 || s.Block[i] < 0 || s.Grid[i] > math.MaxInt32 {
			return fmt.Errorf("%w: a grid of %v blocks of %v threads", goccl.ErrInvalid, s.Grid, s.Block)
		}
		threads *= max(1, s.Block[i])
	}
	switch {
	case threads > k.info.MaxThreads:
		return fmt.Errorf("%w: blocks of %d threads, at most %d", goccl.ErrInvalid, threads, k.info.MaxThreads)
	case s.Shared < 0 || s.Shared > k.info.MaxShared:
		return fmt.Errorf("%w: %d bytes of dynamic shared memory, at most %d; call AllowShared first", goccl.ErrInvalid, s.Shared, k.info.MaxShared)
	case s.Cluster > 0 && k.dev.info.ComputeCap < 90:
		return fmt.Errorf("%w: sm_%d has no clusters", goccl.ErrUnsupported, k.dev.info.ComputeCap)
	case s.Cluster < 0 || s.Cluster > 0 && max(1, s.Grid[0])%s.Cluster != 0:
		return fmt.Errorf("%w: a grid of %d blocks in clusters of %d", goccl.ErrInvalid, s.Grid[0], s.Cluster)
	case argBytes < 0 || argBytes > maxArgBytes:
		return fmt.Errorf("%w: %d bytes of arguments, at most %d", goccl.ErrInvalid, argBytes, maxArgBytes)
	}
	return nil
}

func counts(n [3]int) (c [3]uint32) {
	for i := range n {
		c[i] = uint32(max(1, n[i]))
	}
	return c
}

func (l *Launch) attribute(id uint32, value ...uint32) {
	a := &l.attrs[l.config.count]
	a.id = id
	copy(a.value[:], value)
	l.config.count++
}

// Kernel returns the kernel that is launched.
func (l *Launch) Kernel() *Kernel { return l.kernel }

// SetGrid changes the number of blocks along x.
func (l *Launch) SetGrid(blocks int) { l.config.grid[0] = uint32(max(1, blocks)) }

// Args returns the arguments, in the processor's byte order, to be changed in
// place.
func (l *Launch) Args() []byte { return l.args }

// Put64 sets 8 bytes of the arguments, such as an address, at a byte offset. It
// panics when they are not inside.
func (l *Launch) Put64(off int, v uint64) { binary.NativeEndian.PutUint64(l.args[off:], v) }

// Put32 sets 4 bytes of the arguments at a byte offset. It panics when they are
// not inside.
func (l *Launch) Put32(off int, v uint32) { binary.NativeEndian.PutUint32(l.args[off:], v) }

// Launch queues the kernel.
func (c Section) Launch(l *Launch) error {
	if l.kernel.dev.ctx != c.s.dev.ctx {
		return c.s.dev.wrap(fmt.Errorf("%w: kernel %s was loaded on %s", goccl.ErrInvalid, l.kernel.name, l.kernel.dev.ID()))
	}
	l.config.stream = c.s.handle
	var extra uintptr
	if len(l.args) > 0 {
		extra = uintptr(unsafe.Pointer(&l.extra[0]))
	}
	return c.fast(cuLaunchKernelEx, uintptr(unsafe.Pointer(&l.config)), l.kernel.handle, 0, extra)
}
