package cuda

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/internal/dl"
)

// Options of cuModuleLoadDataEx.
const (
	jitErrorLog      = 5
	jitErrorLogBytes = 6
	jitLogBytes      = 8 << 10
)

// Module is loaded code: kernels and global variables.
type Module struct {
	dev    *Device
	handle uintptr

	once sync.Once
	err  error
}

// LoadModule loads a cubin, a fatbin or the text of PTX, which the driver compiles
// first: tens of milliseconds for each kernel, unless it finds the result of an
// earlier time. It may wait for the device, so it has no place between launches
// that wait for each other. image is not kept. Errors have the compiler's words in
// Error.Log.
func (d *Device) LoadModule(image []byte) (*Module, error) {
	if len(image) == 0 {
		return nil, d.wrap(fmt.Errorf("%w: a module of no bytes", goccl.ErrInvalid))
	}
	if err := d.hold("modules"); err != nil {
		return nil, err
	}
	m := &Module{dev: d}
	var pin runtime.Pinner
	defer pin.Unpin()
	log := make([]byte, jitLogBytes)
	pin.Pin(&log[0])
	options := []uint32{jitErrorLog, jitErrorLogBytes}
	values := []uintptr{uintptr(unsafe.Pointer(&log[0])), jitLogBytes}
	text := append(bytes.Clone(image), 0) // PTX ends with a NUL; binaries say how long they are
	err := d.setup(func() error {
		err := d.drv.do(cuModuleLoadDataEx, uintptr(unsafe.Pointer(&m.handle)), uintptr(unsafe.Pointer(&text[0])),
			uintptr(len(options)), uintptr(unsafe.Pointer(&options[0])), uintptr(unsafe.Pointer(&values[0])))
		if e := (*Error)(nil); errors.As(err, &e) {
			e.Log = dl.Text(log)
		}
		return err
	})
	if err != nil {
		d.letGo("modules")
		return nil, fmt.Errorf("loading a module of %d bytes for sm_%d: %w", len(image), d.info.ComputeCap, err)
	}
	return m, nil
}

// Kernel returns the kernel of that name, which is the name in PTX: mangled unless
// it was declared extern "C". It is loaded to the device here, so that no launch
// has to.
func (m *Module) Kernel(name string) (*Kernel, error) {
	d := m.dev
	k := &Kernel{dev: d, name: name}
	cname := dl.CString(name)
	err := d.setup(func() error {
		if err := d.drv.do(cuModuleGetFunction, uintptr(unsafe.Pointer(&k.handle)), m.handle, uintptr(unsafe.Pointer(&cname[0]))); err != nil {
			return err
		}
		if d.drv.procs[cuFuncLoad] != 0 {
			if err := d.drv.do(cuFuncLoad, k.handle); err != nil {
				return err
			}
		}
		return k.measure()
	})
	if err != nil {
		return nil, fmt.Errorf("kernel %s: %w", name, err)
	}
	return k, nil
}

// Global returns the address and length of a variable of the module.
func (m *Module) Global(name string) (addr uintptr, bytes int, err error) {
	d := m.dev
	var at, n uint64
	cname := dl.CString(name)
	err = d.setup(func() error {
		return d.drv.do(cuModuleGetGlobal, uintptr(unsafe.Pointer(&at)), uintptr(unsafe.Pointer(&n)), m.handle, uintptr(unsafe.Pointer(&cname[0])))
	})
	if err != nil {
		return 0, 0, fmt.Errorf("variable %s: %w", name, err)
	}
	return uintptr(at), int(n), nil
}

// Unload frees the code; its kernels have run and are not launched again. It is
// idempotent.
func (m *Module) Unload() error {
	m.once.Do(func() {
		m.err = m.dev.setup(func() error { return m.dev.drv.do(cuModuleUnload, m.handle) })
		m.dev.letGo("modules")
	})
	return m.err
}
