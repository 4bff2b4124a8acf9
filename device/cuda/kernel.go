package cuda

import (
	"fmt"
	"unsafe"

	"github.com/goccl/goccl"
)

// Attributes of a kernel, as the driver numbers them.
const (
	funcMaxThreads    = 0
	funcStaticShared  = 1
	funcLocalBytes    = 3
	funcRegisters     = 4
	funcPTXVersion    = 5
	funcBinaryVersion = 6
	funcMaxShared     = 8
)

// KernelInfo is what the compiler made of a kernel.
type KernelInfo struct {
	MaxThreads   int // most threads of a block
	Registers    int // of a thread
	LocalBytes   int // of a thread: more than 0 means that registers spill
	StaticShared int // bytes of shared memory that a block has in any case
	MaxShared    int // most bytes of dynamic shared memory that a launch can ask for; see Kernel.AllowShared
	Binary       int // compute capability it was compiled for, 90
	PTX          int // compute capability of its PTX, 70
}

// Kernel is a function that runs on the device. It lives as long as its module.
type Kernel struct {
	dev    *Device
	handle uintptr
	name   string
	info   KernelInfo
}

// measure asks for the attributes. The context is entered.
func (k *Kernel) measure() error {
	for attr, to := range map[int]*int{funcMaxThreads: &k.info.MaxThreads, funcStaticShared: &k.info.StaticShared,
		funcLocalBytes: &k.info.LocalBytes, funcRegisters: &k.info.Registers, funcPTXVersion: &k.info.PTX,
		funcBinaryVersion: &k.info.Binary, funcMaxShared: &k.info.MaxShared} {
		var v int32
		if err := k.dev.drv.do(cuFuncGetAttribute, uintptr(unsafe.Pointer(&v)), uintptr(attr), k.handle); err != nil {
			return err
		}
		*to = int(v)
	}
	return nil
}

// Name returns the name under which the kernel was found.
func (k *Kernel) Name() string { return k.name }

// Info returns what the compiler made of the kernel.
func (k *Kernel) Info() KernelInfo { return k.info }

// AllowShared lets launches ask for up to that many bytes of dynamic shared
// memory; without it 48 KiB less the static part is the most. Info.SharedBytes of
// the device bounds static and dynamic together.
func (k *Kernel) AllowShared(bytes int) error {
	if most := k.dev.info.SharedBytes - k.info.StaticShared; bytes < 0 || bytes > most {
		return k.dev.wrap(fmt.Errorf("%w: kernel %s with %d bytes of dynamic shared memory, at most %d", goccl.ErrInvalid, k.name, bytes, most))
	}
	err := k.dev.setup(func() error { return k.dev.drv.do(cuFuncSetAttribute, k.handle, funcMaxShared, uintptr(bytes)) })
	if err == nil {
		k.info.MaxShared = bytes
	}
	return err
}

// Occupancy returns how many blocks of that many threads and bytes of dynamic
// shared memory one multiprocessor runs at once: 0 when none fits.
func (k *Kernel) Occupancy(threads, shared int) (int, error) {
	var n int32
	err := k.dev.setup(func() error {
		return k.dev.drv.do(cuOccupancyMaxActiveBlocksPerMultiprocessor, uintptr(unsafe.Pointer(&n)), k.handle, uintptr(threads), uintptr(shared))
	})
	return int(n), err
}
