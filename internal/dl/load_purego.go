//go:build (linux || darwin) && (amd64 || arm64) && !android && !ios

package dl

import (
	"runtime"

	"github.com/ebitengine/purego"
)

// load and find keep their thread: the linker's error text is per thread and is
// read by a second call.

func load(name string, global bool) (uintptr, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	mode := purego.RTLD_NOW | purego.RTLD_LOCAL
	if global {
		mode = purego.RTLD_NOW | purego.RTLD_GLOBAL
	}
	return purego.Dlopen(name, mode)
}

func find(handle uintptr, symbol string) (uintptr, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return purego.Dlsym(handle, symbol)
}

func call(f Func, args []uintptr) uintptr {
	r, _, _ := purego.SyscallN(uintptr(f), args...)
	return r
}

func bind(fn any, f Func) { purego.RegisterFunc(fn, uintptr(f)) }

func callback(fn any) (Func, error) { return Func(purego.NewCallback(fn)), nil }
