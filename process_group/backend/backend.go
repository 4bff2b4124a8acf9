// Package backend is where package dist finds the engines that move a group's
// data, other than the library's own. A package with an engine registers it when it
// is initialised, so that a blank import brings it into a program:
//
//	import _ "github.com/goccl/goccl/process_group/backend/nccl"
package backend

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/bootstrap"
	"github.com/goccl/goccl/device"
	processgroup "github.com/goccl/goccl/process_group"
)

// Spec says what an engine is made for: one rank of one group.
type Spec struct {
	// ID is where the ranks of the group meet: its root serves until they leave.
	// It is zero in a group of one.
	ID         bootstrap.UniqueID
	Rank, Size int
	Name, Job  string
	Device     device.Device     // of this rank; nil: none was given
	Options    map[string]string // "nccl.maxCTAs": the name of an engine, a dot, and its own for a setting
	Timeout    time.Duration     // of joining
	Logger     *slog.Logger
	Split      *Split // nil: the group is made of nothing
}

// Split says that a group is made of a part of another one's ranks, while all of
// them make such groups at the same time.
type Split struct {
	Parent     processgroup.Backend
	Color, Key int
}

// Engine is a backend with its control plane.
type Engine interface {
	processgroup.Backend
	Control() processgroup.Control
}

// Splitter is an optional ability of an engine that makes groups out of a group:
// every rank of the group takes part. SitOut is the part of one that is in none.
type Splitter interface {
	SitOut(ctx context.Context) error
}

// Maker makes an engine. It blocks until all ranks of the group have come, bounded
// by ctx and Spec.Timeout, and its error names those that have not.
type Maker func(ctx context.Context, s Spec) (Engine, error)

var registry struct {
	mu     sync.Mutex
	makers map[string]Maker
}

// Register makes an engine known by name. It panics when the name is taken.
func Register(name string, m Maker) {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	if registry.makers[name] != nil {
		panic(fmt.Sprintf("backend: %s is registered twice", name))
	}
	if registry.makers == nil {
		registry.makers = map[string]Maker{}
	}
	registry.makers[name] = m
}

// Find returns the engine registered by name. The error lists those that this
// program has and wraps goccl.ErrUnsupported.
func Find(name string) (Maker, error) {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	if m := registry.makers[name]; m != nil {
		return m, nil
	}
	have := []string{"ccl"}
	for n := range registry.makers {
		have = append(have, n)
	}
	slices.Sort(have)
	return nil, fmt.Errorf("%w: this program has no backend called %q, it has %s; import _ \"github.com/goccl/goccl/process_group/backend/%s\"",
		goccl.ErrUnsupported, name, strings.Join(have, " "), name)
}
