package dist

import (
	"context"
	"errors"

	"github.com/goccl/goccl"
	processgroup "github.com/goccl/goccl/process_group"
	"github.com/goccl/goccl/process_group/backend"
)

// control returns the control plane of a group: its backend's own, and for all
// groups but the world the fate of the world besides.
func (j *Job) control(b backend.Engine) processgroup.Control {
	if j.world == nil {
		return b.Control()
	}
	return &subject{Control: b.Control(), world: j.world}
}

// subject ends a group when the world fails: a rank that fails the world may be
// what another one waits for in a smaller group.
type subject struct {
	processgroup.Control
	world *Group
	stop  func() bool // ends the listening to the world
}

var (
	_ processgroup.Control = (*subject)(nil)
	_ processgroup.Referee = (*subject)(nil)
)

// Decide implements processgroup.Referee.
func (s *subject) Decide(err error) error {
	if r, ok := s.Control.(processgroup.Referee); ok {
		return r.Decide(err)
	}
	s.Control.Fail(err)
	return err
}

// release lets go of a group that has ended.
func (s *subject) release() { s.stop() }

// OnFailure implements processgroup.Control.
func (s *subject) OnFailure(f func(error)) {
	s.Control.OnFailure(f)
	s.stop = context.AfterFunc(s.world.Context(), func() {
		if cause := context.Cause(s.world.Context()); !errors.Is(cause, goccl.ErrClosed) {
			f(cause)
		}
	})
}
