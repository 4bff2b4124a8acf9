package nccl

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/process_group/backend"
)

var (
	_ backend.Engine   = (*Backend)(nil)
	_ backend.Splitter = (*Backend)(nil)
)

func init() { backend.Register("nccl", open) }

// open makes the backend that package dist asks for.
func open(ctx context.Context, s backend.Spec) (backend.Engine, error) {
	cfg := Config{Rank: s.Rank, Size: s.Size, Name: s.Name, Job: s.Job, Device: s.Device, Timeout: s.Timeout, Logger: s.Logger}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(s.Options)) {
		if name, mine := strings.CutPrefix(key, "nccl."); mine {
			errs = append(errs, cfg.option(name, s.Options[key]))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	var b *Backend
	var err error
	if s.Split == nil {
		b, err = New(ctx, s.ID, cfg)
	} else {
		parent, ok := s.Split.Parent.(*Backend)
		if !ok {
			return nil, fmt.Errorf("%w: a group of backend nccl split from one of backend %s", goccl.ErrInvalid, s.Split.Parent.Name())
		}
		b, err = Split(ctx, parent, s.Split.Color, s.Split.Key, s.ID, cfg)
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}
