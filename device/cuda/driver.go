package cuda

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/internal/dl"
)

// minVersion is the oldest driver: CUDA 12.0, which is 525.60 on Linux. From
// there on one table of functions serves all, and cubins of CUDA 12 load.
const minVersion = 12000

// libraries are the driver's names.
var libraries = []string{"libcuda.so.1", "libcuda.so"}

// Driver is libcuda, loaded and initialised. It is safe for concurrent use.
type Driver struct {
	procs   [procCount]dl.Func
	name    string
	version int

	openMem   func(addr *uintptr, handle rawHandle, flags uint32) int32 // takes 64 bytes by value
	openEvent func(event *uintptr, handle rawHandle) int32
}

var load = sync.OnceValues(func() (*Driver, error) { return open(libraries...) })

// Load loads and initialises the driver, which takes about a quarter of a second
// the first time; later calls return what the first one did. Without a driver, or
// with one older than CUDA 12.0, or without a GPU, the error wraps
// goccl.ErrUnsupported and says which.
func Load() (*Driver, error) { return load() }

// open loads the driver from the first of the names that can be loaded.
func open(names ...string) (*Driver, error) {
	lib, err := dl.Open(names...)
	if err != nil {
		return nil, fmt.Errorf("cuda: no NVIDIA driver: %w", err)
	}
	d := &Driver{name: lib.Name()}
	// The version comes first: an old driver shall be called old, not broken.
	first := []dl.Symbol{{Name: procNames[cuDriverGetVersion], Into: &d.procs[cuDriverGetVersion]}}
	if err := lib.Resolve(first); err != nil {
		return nil, fmt.Errorf("cuda: %w", err)
	}
	var version int32
	if err := d.do(cuDriverGetVersion, uintptr(unsafe.Pointer(&version))); err != nil {
		return nil, fmt.Errorf("cuda: %w", err)
	}
	d.version = int(version)
	if d.version < minVersion {
		return nil, fmt.Errorf("cuda: %w: the driver of %s knows CUDA up to %s, %s is needed: update it to 525 or newer",
			goccl.ErrUnsupported, d.name, dotted(d.version), dotted(minVersion))
	}
	var table []dl.Symbol
	for p, name := range procNames {
		table = append(table, dl.Symbol{Name: name, Into: &d.procs[p], Optional: optional[proc(p)]})
	}
	if err := lib.Resolve(table); err != nil {
		return nil, fmt.Errorf("cuda: %w", err)
	}
	if err := d.bindByValue(); err != nil {
		return nil, fmt.Errorf("cuda: %w", err)
	}
	if err := d.do(cuInit, 0); err != nil {
		return nil, fmt.Errorf("cuda: the driver does not start: %w", err)
	}
	return d, nil
}

// dotted writes a version as people do: 12040 is 12.4.
func dotted(v int) string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }

// Version returns the newest CUDA version that the driver knows: 12040 is 12.4.
func (d *Driver) Version() int { return d.version }

// String names the library and the version.
func (d *Driver) String() string { return fmt.Sprintf("%s, CUDA %s", d.name, dotted(d.version)) }

// do calls a function of the driver. It allocates; addresses converted in the
// call expression stay in place.
//
//go:uintptrescapes
func (d *Driver) do(p proc, args ...uintptr) error {
	if code := Code(dl.Int32(d.procs[p].Call(args...))); code != 0 {
		return d.failure(p, code)
	}
	return nil
}

// fast is do without an allocation, under the rules of dl.Func.Fast.
func (d *Driver) fast(p proc, args ...uintptr) error {
	if code := Code(dl.Int32(d.procs[p].Fast(args...))); code != 0 {
		return d.failure(p, code)
	}
	return nil
}
