package interp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/goccl/goccl/comm/exec/gpu"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/device/cuda"
	"github.com/goccl/goccl/device/kernels"
	"github.com/goccl/goccl/device/kernels/abi"
)

const (
	module = "interp"
	warp   = 32
	// patience bounds a copy that does not wait for the work of streams.
	patience = time.Minute
	// freeShared is the dynamic shared memory that needs no permission.
	freeShared = 48 << 10
)

// Device is one GPU for ranks of this process. It is safe for concurrent use.
type Device struct {
	dev *cuda.Device

	mu     sync.Mutex
	module *cuda.Module // nil until a kernel is needed
}

var _ gpu.Device = (*Device)(nil)

// New returns a Device on dev, which stays the caller's.
func New(dev *cuda.Device) *Device { return &Device{dev: dev} }

// Close unloads the kernels. All ranks on the device must be closed.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.module == nil {
		return nil
	}
	m := d.module
	d.module = nil
	return m.Unload()
}

// Alloc implements gpu.Device.
func (d *Device) Alloc(bytes int) (device.Memory, error) {
	m, err := d.dev.AllocMemory(bytes)
	if err != nil {
		return nil, err
	}
	return &memory{Memory: m}, nil
}

// Write implements gpu.Device.
func (d *Device) Write(dst uintptr, b []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return d.dev.Write(ctx, dst, b)
}

// Warp implements gpu.Device.
func (d *Device) Warp() int { return warp }

// Kernel implements gpu.Device.
func (d *Device) Kernel(name string) (gpu.Kernel, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.module == nil {
		image, err := kernels.Load(module, d.dev.Info().ComputeCap)
		if err != nil {
			return nil, err
		}
		if d.module, err = d.dev.LoadModule(image.Code); err != nil {
			return nil, err
		}
	}
	k, err := d.module.Kernel(name)
	if err != nil {
		return nil, err
	}
	return &kernel{k}, nil
}

type kernel struct{ k *cuda.Kernel }

// Prepare implements gpu.Kernel.
func (k *kernel) Prepare(blocks, threads, shared, args int) (gpu.Launch, error) {
	if shared > freeShared && shared > k.k.Info().MaxShared {
		if err := k.k.AllowShared(shared); err != nil {
			return nil, err
		}
	}
	l, err := k.k.NewLaunch(cuda.Shape{Grid: [3]int{blocks}, Block: [3]int{threads}, Shared: shared}, args)
	if err != nil {
		return nil, err
	}
	return launch{l}, nil
}

type launch struct{ *cuda.Launch }

// Queue implements gpu.Launch.
func (l launch) Queue(s device.Stream) error {
	st, ok := s.(*cuda.Stream)
	if !ok {
		return fmt.Errorf("cuda: a kernel on a stream of type %T", s)
	}
	sec, err := st.Enter()
	if err != nil {
		return err
	}
	defer sec.Leave()
	return sec.Launch(l.Launch)
}

// status is an abi.InterpStatus in pinned memory.
type status struct {
	*cuda.Pinned
	word *abi.InterpStatus
}

// Status implements gpu.Device.
func (d *Device) Status() (gpu.Status, error) {
	p, err := d.dev.AllocPinned(int(unsafe.Sizeof(abi.InterpStatus{})))
	if err != nil {
		return nil, err
	}
	return &status{p, (*abi.InterpStatus)(unsafe.Pointer(unsafe.SliceData(p.Host())))}, nil
}

func (s *status) Addr() uintptr { return s.DeviceAddr() }
func (s *status) Abort()        { atomic.StoreUint32(&s.word.Abort, 1) }
func (s *status) Fault() uint32 { return atomic.LoadUint32(&s.word.Fault) }

var (
	_ gpu.Status = (*status)(nil)
	_ gpu.Kernel = (*kernel)(nil)
	_ gpu.Launch = launch{}

	errGone = errors.New("its owner has freed it")
)
