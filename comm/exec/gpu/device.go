package gpu

import "github.com/goccl/goccl/device"

// Device is one GPU, as a Rank needs it.
type Device interface {
	// Alloc returns zeroed device memory, aligned to 512 bytes, that Export and
	// kernels of this device accept.
	Alloc(bytes int) (device.Memory, error)
	// Export returns a handle by which another rank, of this process or of another
	// one on this machine, imports the memory.
	Export(m device.Memory) ([]byte, error)
	// Import makes another rank's memory accessible to kernels of this device. Free of
	// the result ends the access and leaves the memory alone.
	Import(handle []byte) (device.Memory, error)
	// Write copies b to device memory and blocks until it is there.
	Write(dst uintptr, b []byte) error
	// Status returns host memory that kernels read and write, zero.
	Status() (Status, error)
	// Warp returns the threads of a warp: 32.
	Warp() int
	// Kernel returns a kernel of the module "interp". Loading may wait for the device.
	Kernel(name string) (Kernel, error)
}

// Status is an abi.InterpStatus that host and device share. Its methods are safe
// for concurrent use, up to Free.
type Status interface {
	Addr() uintptr // for kernels
	Abort()
	Fault() uint32
	Free() error
}

// Kernel is a loaded kernel.
type Kernel interface {
	// Prepare makes a launch ready: blocks of threads with shared bytes of dynamic shared
	// memory and args bytes of arguments. It may wait for the device.
	Prepare(blocks, threads, shared, args int) (Launch, error)
}

// Launch is one launch, which can be queued again and again. It belongs to one
// goroutine at a time.
type Launch interface {
	// Args is the memory of the arguments, to be changed in place before Queue, which
	// reads it.
	Args() []byte
	Queue(s device.Stream) error
}
