package device

import (
	"fmt"
	"sync"

	"github.com/goccl/goccl"
)

// Opener opens one device of its kind.
type Opener func(index int) (Device, error)

var registry struct {
	mu      sync.Mutex
	openers map[Kind]Opener
}

// Register makes the devices of a kind known to Open. A package of devices calls
// it when it is initialised, so that a blank import brings the kind in. It panics
// when the kind is known already.
func Register(k Kind, o Opener) {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	if registry.openers[k] != nil {
		panic(fmt.Sprintf("device: %s is registered twice", k))
	}
	if registry.openers == nil {
		registry.openers = map[Kind]Opener{}
	}
	registry.openers[k] = o
}

// Open opens the device called id. The error wraps goccl.ErrUnsupported when the
// program has no package for its kind, or the machine no such device.
func Open(id ID) (Device, error) {
	registry.mu.Lock()
	o := registry.openers[id.Kind]
	registry.mu.Unlock()
	if o == nil {
		return nil, fmt.Errorf("%w: this program has no devices of kind %s; import _ \"github.com/goccl/goccl/device/%s\"", goccl.ErrUnsupported, id.Kind, id.Kind)
	}
	return o(id.Index)
}
