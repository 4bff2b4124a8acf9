//go:build !((linux || darwin) && (amd64 || arm64) && !android && !ios)

package dl

import (
	"fmt"
	"runtime"

	"github.com/goccl/goccl"
)

// No library can be loaded here, so there is no Func but 0.

func none() error {
	return fmt.Errorf("C libraries cannot be loaded on %s/%s", runtime.GOOS, runtime.GOARCH)
}

func load(string, bool) (uintptr, error) { return 0, none() }

func find(uintptr, string) (uintptr, error) { return 0, none() }

func call(Func, []uintptr) uintptr {
	panic("dl: " + none().Error()) // panic: programmer error, only 0 can be called here
}

func bind(any, Func) {
	panic("dl: " + none().Error()) // panic: becomes the error of Bind
}

func callback(any) (Func, error) { return 0, fmt.Errorf("%w: %w", goccl.ErrUnsupported, none()) }
