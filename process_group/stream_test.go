package processgroup_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	processgroup "github.com/goccl/goccl/process_group"
	"github.com/goccl/goccl/process_group/backend/fake"
)

// stream is a stream that no device stands behind.
type stream struct{ id uintptr }

func (s *stream) Record() (device.Event, error) { return nil, errors.New("no device") }
func (s *stream) WaitEvent(device.Event) error  { return errors.New("no device") }
func (s *stream) Sync(context.Context) error    { return nil }
func (s *stream) Handle() uintptr               { return s.id }
func (s *stream) Close() error                  { return nil }

// joining is a backend on a device.
type joining struct {
	*fake.Backend
	joined []device.Stream
}

func (j *joining) Join(_ *processgroup.Op, s device.Stream) error {
	j.joined = append(j.joined, s)
	return nil
}

func TestViewsOrderAfterTheirStream(t *testing.T) {
	j := &joining{Backend: fake.New()}
	g := processgroup.New(processgroup.Config{Name: "g", Size: 2, Backend: j})
	defer func() { g.Abort(nil); require.NoError(t, g.Close()) }()
	a, b := &stream{1}, &stream{2}
	require.Same(t, g, g.On(nil))
	require.Same(t, g.On(a), g.On(a))
	require.NotSame(t, g.On(a), g.On(b))
	require.Same(t, g, g.On(a).On(nil))
	require.Equal(t, g.Name(), g.On(a).Name())
	require.Zero(t, testing.AllocsPerRun(100, func() { g.On(b) }))

	cuda := device.FromPointer(64, 2, goccl.F32, device.ID{Kind: device.CUDA, Index: 1}, nil)
	w := g.On(a).AllReduce(cuda, goccl.Sum)
	g.On(a).AllReduce(cuda, goccl.Sum, processgroup.OnStream(b))
	ops := j.Pending()
	require.Len(t, ops, 2)
	require.Same(t, a, ops[0].Stream)
	require.Same(t, b, ops[1].Stream)

	require.NoError(t, w.Join(b))
	require.Equal(t, []device.Stream{b}, j.joined)
	require.ErrorIs(t, w.Join(nil), goccl.ErrInvalid)
	require.ErrorIs(t, processgroup.Work{}.Join(a), goccl.ErrInvalid)
	j.Complete(nil)
	require.NoError(t, w.Wait(t.Context()))
	require.NoError(t, w.Join(b))
}

func TestJoinNeedsADevice(t *testing.T) {
	g := immediate(t)
	require.ErrorIs(t, g.AllReduce(f32(1), goccl.Sum).Join(&stream{}), goccl.ErrUnsupported)
}

// allocating is a backend with memory of its own.
type allocating struct {
	*fake.Backend
	live, freed int
	fail        error
}

func (a *allocating) NewBuffer(n int, d goccl.DType) (device.Buffer, func() error, error) {
	if a.fail != nil {
		return device.Buffer{}, nil, a.fail
	}
	a.live++
	b := device.SliceOf(make([]uint64, n))
	b.Count, b.DType = n, d
	return b, func() error { a.live--; a.freed++; return nil }, nil
}

func TestNewBuffer(t *testing.T) {
	a := &allocating{Backend: fake.New()}
	control := new(fake.Control)
	g := processgroup.New(processgroup.Config{Name: "g", Size: 2, Backend: a, Control: control})
	first, err := g.NewBuffer(5, goccl.BF16)
	require.NoError(t, err)
	require.Equal(t, 5, first.Count)
	_, err = g.NewBuffer(6, goccl.F32)
	require.NoError(t, err)
	none, err := g.NewBuffer(0, goccl.F32)
	require.NoError(t, err)
	require.Zero(t, none.Count)
	require.NoError(t, g.FreeBuffer(first.Slice(0, 1)))
	require.NoError(t, g.FreeBuffer(first), "a second time")
	require.NoError(t, g.FreeBuffer(f32(3)), "not a window")
	require.Equal(t, 1, a.live)
	for _, bad := range []error{second(g.NewBuffer(-1, goccl.F32)), second(g.NewBuffer(1, 0)), second(g.NewBuffer(1<<62, goccl.F32))} {
		require.ErrorIs(t, bad, goccl.ErrInvalid)
	}
	a.fail = errors.New("no memory")
	require.ErrorIs(t, second(g.NewBuffer(1, goccl.F32)), a.fail)
	require.Equal(t, a.fail, control.Told(), "the other ranks wait for this one")
	require.NoError(t, g.Close())
	require.Zero(t, a.live)
	require.Equal(t, 2, a.freed)
}

func second(_ device.Buffer, err error) error { return err }
