package devicetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
)

const piece = 1000

// Each copy reads what the one before it wrote.
func streamOrder(t *testing.T, c Config) {
	d := c.open(t)
	s := stream(t, d)
	m := alloc(t, d, 2*piece)
	in, out := c.Host(t, d, 20*piece), c.Host(t, d, piece) // before the gate: making it may wait for the device
	a, b := m.Addr(), m.Addr()+piece
	open := c.Gate(t, d, s)
	defer open()
	for i := range 20 {
		part := pattern(in[i*piece:(i+1)*piece], i)
		require.NoError(t, copier(t, s).Copy(a, addr(part), piece))
		require.NoError(t, copier(t, s).Copy(b, a, piece))
	}
	require.NoError(t, copier(t, s).Copy(addr(out), b, piece))
	open()
	require.NoError(t, s.Sync(t.Context()))
	require.Equal(t, pattern(make([]byte, piece), 19), out)
}

func eventAfterWork(t *testing.T, c Config) {
	d := c.open(t)
	s := stream(t, d)
	open := c.Gate(t, d, s)
	defer open()
	e, err := s.Record()
	require.NoError(t, err)
	defer e.Release()
	done, err := e.Done()
	require.NoError(t, err)
	require.False(t, done, "an event is done before the work in front of it")
	open()
	require.NoError(t, e.Wait(t.Context()))
	done, err = e.Done()
	require.NoError(t, err)
	require.True(t, done)
	require.NoError(t, e.Wait(t.Context()), "a second time")
}

// One stream's copy must not begin before the other's gate opens.
func crossStream(t *testing.T, c Config) {
	d := c.open(t)
	first, second := stream(t, d), stream(t, d)
	m := alloc(t, d, piece)
	in, out := pattern(c.Host(t, d, piece), 3), c.Host(t, d, piece)
	open := c.Gate(t, d, first)
	defer open()
	require.NoError(t, copier(t, first).Copy(m.Addr(), addr(in), piece))
	e, err := first.Record()
	require.NoError(t, err)
	require.NoError(t, second.WaitEvent(e))
	require.NoError(t, copier(t, second).Copy(addr(out), m.Addr(), piece))
	after, err := second.Record()
	require.NoError(t, err)
	for range 50 {
		done, err := after.Done()
		require.NoError(t, err)
		require.False(t, done, "the second stream did not wait")
	}
	open()
	require.NoError(t, second.Sync(t.Context()))
	require.Equal(t, pattern(make([]byte, piece), 3), out)
	e.Release()
	after.Release()
}

// A stream that was told to wait does so though the event is released and used
// again.
func releasedEvent(t *testing.T, c Config) {
	d := c.open(t)
	first, second, third := stream(t, d), stream(t, d), stream(t, d)
	open := c.Gate(t, d, first)
	defer open()
	e, err := first.Record()
	require.NoError(t, err)
	require.NoError(t, second.WaitEvent(e))
	e.Release()
	again, err := third.Record()
	require.NoError(t, err)
	require.NoError(t, again.Wait(t.Context()))
	after, err := second.Record()
	require.NoError(t, err)
	done, err := after.Done()
	require.NoError(t, err)
	require.False(t, done, "the release of an event let a stream go on")
	open()
	require.NoError(t, after.Wait(t.Context()))
	again.Release()
	after.Release()
}

func waitEnds(t *testing.T, c Config) {
	d := c.open(t)
	s := stream(t, d)
	open := c.Gate(t, d, s)
	defer open()
	e, err := s.Record()
	require.NoError(t, err)
	defer e.Release()
	cause := errors.New("the reason")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	require.ErrorIs(t, e.Wait(ctx), cause)
	require.ErrorIs(t, s.Sync(ctx), cause)

	later, end := context.WithCancelCause(t.Context())
	waited := make(chan error)
	go func() { waited <- s.Sync(later) }()
	end(cause)
	require.ErrorIs(t, <-waited, cause)
	open()
	require.NoError(t, s.Sync(t.Context()), "a wait that was given up changes nothing")
}

type alien struct{ device.Event }

func foreignEvent(t *testing.T, c Config) {
	d := c.open(t)
	s := stream(t, d)
	require.ErrorIs(t, s.WaitEvent(alien{}), goccl.ErrInvalid)
	require.ErrorIs(t, s.WaitEvent(nil), goccl.ErrInvalid)
	require.NoError(t, s.Sync(t.Context()))
}

func priorities(t *testing.T, c Config) {
	d := c.open(t)
	for _, prio := range []int{-1000, -1, 0, 1, 1000} {
		s, err := d.NewStream(prio)
		require.NoError(t, err, "priority %d", prio)
		require.NoError(t, s.Sync(t.Context()))
		require.NoError(t, s.Close())
	}
}

func closedStream(t *testing.T, c Config) {
	d := c.open(t)
	m := alloc(t, d, piece)
	in, out := pattern(c.Host(t, d, piece), 8), c.Host(t, d, piece)
	s, err := d.NewStream(0)
	require.NoError(t, err)
	require.NoError(t, copier(t, s).Copy(m.Addr(), addr(in), piece))
	require.NoError(t, copier(t, s).Copy(addr(out), m.Addr(), piece))
	e, err := s.Record()
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.NoError(t, e.Wait(t.Context()))
	e.Release()
	require.Equal(t, pattern(make([]byte, piece), 8), out)
	_, err = s.Record()
	require.ErrorIs(t, err, goccl.ErrClosed)
}

// Goroutines change threads between calls, so what a device keeps per thread
// would show here.
func concurrent(t *testing.T, c Config) {
	d := c.open(t)
	host := make([][]byte, 8)
	for g := range host {
		host[g] = c.Host(t, d, 2*piece)
	}
	var wg sync.WaitGroup
	failed := make(chan error, len(host))
	for g := range host {
		wg.Go(func() { failed <- roundTrips(t.Context(), d, host[g], g) })
	}
	wg.Wait()
	close(failed)
	for err := range failed {
		require.NoError(t, err)
	}
}

// roundTrips sends patterns to the device and back, with memory and a stream of
// its own each time.
func roundTrips(ctx context.Context, d device.Device, host []byte, g int) error {
	in, out := host[:piece], host[piece:]
	for i := range 20 {
		m, err := d.Alloc(piece)
		if err != nil {
			return err
		}
		s, err := d.NewStream(-g)
		if err != nil {
			return err
		}
		pattern(in, g*100+i)
		c := s.(device.Copier)
		if err := errors.Join(c.Copy(m.Addr(), addr(in), piece), c.Copy(addr(out), m.Addr(), piece), s.Sync(ctx), m.Free(), s.Close()); err != nil {
			return err
		}
		if string(in) != string(out) {
			return fmt.Errorf("goroutine %d, round %d: what came back differs", g, i)
		}
	}
	return nil
}

func capabilities(t *testing.T, c Config) {
	d := c.open(t)
	caps := d.Caps()
	for _, ability := range []struct {
		name string
		has  bool
		try  func(t *testing.T, d device.Device) error
	}{
		{"PeerMap", caps.PeerMap, c.PeerMap}, {"StreamMemOps", caps.StreamMemOps, c.StreamMemOps},
		{"Graphs", caps.Graphs, c.Graphs}, {"Multicast", caps.Multicast, c.Multicast},
	} {
		if ability.try == nil {
			require.False(t, ability.has, "%s is claimed and cannot be tried", ability.name)
			continue
		}
		err := ability.try(t, d)
		if ability.has {
			require.NoError(t, err, ability.name)
		} else {
			require.ErrorIs(t, err, goccl.ErrUnsupported, ability.name)
		}
	}
	require.Equal(t, d.ID().Kind == device.Host, caps.ComputeCap == 0, "compute capability %d of a device on %s", caps.ComputeCap, d.ID())
}
