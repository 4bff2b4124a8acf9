// Package cuda runs the collectives of backend ccl on NVIDIA GPUs that reach each
// other's memory. A blank import makes it part of a program; a program for the CPU
// does without, and so without the driver and the kernels.
//
//	import _ "github.com/goccl/goccl/process_group/backend/ccl/cuda"
package cuda

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm"
	"github.com/goccl/goccl/comm/exec/gpu"
	"github.com/goccl/goccl/comm/plan"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/device/cuda"
	"github.com/goccl/goccl/device/cuda/interp"
	"github.com/goccl/goccl/process_group/backend/ccl"
)

func init() {
	ccl.RegisterAccelerator(device.CUDA, func(dev device.Device, rank, size int, share bool) (comm.Accelerator, error) {
		d, ok := dev.(*cuda.Device)
		if !ok {
			return nil, fmt.Errorf("%w: a CUDA device of type %T; package device/cuda opens one", goccl.ErrInvalid, dev)
		}
		return New(d, rank, size, share)
	})
}

// accelerator is one rank on one GPU.
type accelerator struct {
	dev    *cuda.Device
	kernel *interp.Device
	rank   *gpu.Rank
	layout gpu.Layout
	share  bool

	granted  int // channels, by the ledger
	channels int // that all ranks have

	mu     sync.Mutex
	closed bool
}

var _ comm.Accelerator = (*accelerator)(nil)

// New returns what runs the collectives of rank, of size, on dev, which stays the
// caller's. share lets ranks of one process use one GPU, if all of them agree. It
// allocates the memory that peers write into.
func New(dev *cuda.Device, rank, size int, share bool) (comm.Accelerator, error) {
	a := &accelerator{dev: dev, kernel: interp.New(dev), layout: gpu.DefaultLayout(size, dev.Info().SMs), share: share}
	a.granted = ledger.take(dev.Info().UUID, dev.Info().SMs, a.layout.Channels)
	a.channels = a.granted
	var err error
	a.rank, err = gpu.New(gpu.Config{Rank: rank, Layout: a.layout, Device: a.kernel})
	if err != nil {
		ledger.giveBack(dev.Info().UUID, a.granted)
		return nil, err
	}
	return a, nil
}

// greeting is what ranks tell each other.
type greeting struct {
	GPU    string     `json:"gpu"` // its uuid
	Name   string     `json:"name"`
	PID    int        `json:"pid"`
	Share  bool       `json:"share"`
	Layout gpu.Layout `json:"layout"`
	// Channels are granted to this rank; all use the fewest.
	Channels int    `json:"channels"`
	Region   []byte `json:"region"`
}

// Device implements comm.Accelerator.
func (a *accelerator) Device() device.Device { return a.dev }

// Announce implements comm.Accelerator.
func (a *accelerator) Announce() ([]byte, error) {
	return json.Marshal(greeting{GPU: a.dev.Info().UUID.String(), Name: a.dev.Info().Name, PID: os.Getpid(), Share: a.share, Layout: a.layout, Channels: a.granted, Region: a.rank.Handle()})
}

// Meet implements comm.Accelerator.
func (a *accelerator) Meet(announced [][]byte) error {
	all := make([]greeting, len(announced))
	regions := make([][]byte, len(announced))
	for r, b := range announced {
		if err := json.Unmarshal(b, &all[r]); err != nil {
			return fmt.Errorf("%w: what rank %d says of its GPU: %w", goccl.ErrMismatch, r, err)
		}
		regions[r] = all[r].Region
		a.channels = max(min(a.channels, all[r].Channels), 1)
	}
	if err := check(all); err != nil {
		return err
	}
	return a.rank.Map(regions)
}

// check refuses ranks that do not fit each other. It is pure and gives the same error
// on all ranks.
func check(all []greeting) error {
	on := map[string]int{}
	for r, g := range all {
		if g.Layout != all[0].Layout {
			return fmt.Errorf("%w: ranks 0 and %d lay out their memory differently: use one release and the same settings everywhere", goccl.ErrMismatch, r)
		}
		first, taken := on[g.GPU]
		switch {
		case !taken:
			on[g.GPU] = r
		case !g.Share || !all[first].Share:
			return fmt.Errorf("%w: ranks %d and %d both use %s (%s): give each rank a GPU of its own; GOCCL_SHARE_GPU=1 lets ranks of one process share one, for tests",
				goccl.ErrInvalid, first, r, g.Name, g.GPU)
		case g.PID != all[first].PID:
			return fmt.Errorf("%w: ranks %d and %d share %s (%s) from two processes, whose kernels take turns and would wait for each other; ranks that share a GPU must be in one process",
				goccl.ErrUnsupported, first, r, g.Name, g.GPU)
		}
	}
	return nil
}

// Limits implements comm.Accelerator.
func (a *accelerator) Limits() comm.Limits {
	ll, shotLL := a.layout.MaxChunk(goccl.LL)
	simple, shotSimple := a.layout.MaxChunk(goccl.Simple)
	return comm.Limits{Channels: a.channels, LL: int64(ll), Simple: int64(simple), ShotLL: int64(shotLL), ShotSimple: int64(shotSimple)}
}

// Bind implements comm.Accelerator.
func (a *accelerator) Bind(p *plan.Program) (comm.Launcher, error) {
	b, err := a.rank.Bind(p)
	if err != nil { // not b: a nil *gpu.Bound is no nil Launcher
		return nil, err
	}
	return b, nil
}

// Abort implements comm.Accelerator. After Close there is nothing to abort, nor the
// word that says so.
func (a *accelerator) Abort() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		a.rank.Abort()
	}
}

// Close implements comm.Accelerator.
func (a *accelerator) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil
	}
	a.closed = true
	defer ledger.giveBack(a.dev.Info().UUID, a.granted)
	if err := a.rank.Close(); err != nil {
		return err
	}
	return a.kernel.Close()
}
