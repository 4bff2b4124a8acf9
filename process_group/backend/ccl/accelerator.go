package ccl

import (
	"fmt"
	"sync"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm"
	"github.com/goccl/goccl/device"
)

// AcceleratorMaker makes what runs operations on dev for one rank of size. share
// says that ranks may use one device together.
type AcceleratorMaker func(dev device.Device, rank, size int, share bool) (comm.Accelerator, error)

var accelerators struct {
	mu     sync.Mutex
	makers map[device.Kind]AcceleratorMaker
}

// RegisterAccelerator makes operations on a kind of device possible. The package
// that does so when it is initialised comes into a program by a blank import:
//
//	import _ "github.com/goccl/goccl/process_group/backend/ccl/cuda"
//
// So a program for the CPU does not carry the driver and its kernels. It panics
// when the kind is known already.
func RegisterAccelerator(k device.Kind, m AcceleratorMaker) {
	accelerators.mu.Lock()
	defer accelerators.mu.Unlock()
	if accelerators.makers[k] != nil {
		panic(fmt.Sprintf("ccl: an accelerator for %v is registered twice", k))
	}
	if accelerators.makers == nil {
		accelerators.makers = map[device.Kind]AcceleratorMaker{}
	}
	accelerators.makers[k] = m
}

// accelerator makes the accelerator of cfg, nil when it has no device.
func (cfg Config) accelerator() (comm.Accelerator, error) {
	if cfg.Device == nil || cfg.Device.ID().Kind == device.Host {
		return nil, nil
	}
	k := cfg.Device.ID().Kind
	accelerators.mu.Lock()
	m := accelerators.makers[k]
	accelerators.mu.Unlock()
	if m == nil {
		return nil, fmt.Errorf("%w: this program has nothing that runs collectives on %v; import _ \"github.com/goccl/goccl/process_group/backend/ccl/%v\"",
			goccl.ErrUnsupported, cfg.Device.ID(), k)
	}
	a, err := m(cfg.Device, cfg.Rank, cfg.Size, cfg.ShareDevice)
	if err != nil {
		return nil, fmt.Errorf("rank %d: %v: %w", cfg.Rank, cfg.Device.ID(), err)
	}
	return a, nil
}
