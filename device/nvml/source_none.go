//go:build !(cgo && linux)

package nvml

import (
	"fmt"
	"runtime"

	"github.com/goccl/goccl"
)

func newSource() (source, error) {
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("%w: it is used on Linux only", goccl.ErrUnsupported)
	}
	return nil, fmt.Errorf("%w: this program was built without cgo (CGO_ENABLED=0), which the binding of NVML needs", goccl.ErrUnsupported)
}
