package cuda

import (
	"encoding/binary"
	"errors"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
)

func testGraph(t *testing.T, m machine) {
	d := m.open(t, 0)
	s := newStream(t, d)
	const words = 1000
	mod := module(t, d)
	fill, err := mod.Kernel("fill")
	require.NoError(t, err)
	add, err := mod.Kernel("add")
	require.NoError(t, err)
	a, b := memory(t, d, 4*words), memory(t, d, 4*words)
	sum, err := add.NewLaunch(Shape{Grid: [3]int{2}, Block: [3]int{64}}, 20)
	require.NoError(t, err)
	sum.Put64(0, uint64(a.Addr()))
	sum.Put64(8, uint64(b.Addr()))
	sum.Put32(16, words)
	one := filling(t, fill, Shape{Grid: [3]int{2}, Block: [3]int{64}}, b.Addr(), 1, words)
	g, err := s.Capture(func() error {
		capturing, err := s.Capturing()
		require.NoError(t, err)
		require.True(t, capturing)
		sec, err := s.Enter()
		if err != nil {
			return err
		}
		defer sec.Leave()
		capturing, err = sec.Capturing()
		require.NoError(t, err)
		require.True(t, capturing)
		return errors.Join(sec.Launch(one), sec.Launch(sum))
	})
	require.NoError(t, err)
	capturing, err := s.Capturing()
	require.NoError(t, err)
	require.False(t, capturing)
	require.Equal(t, make([]byte, 4*words), read(t, d, a.Addr(), 4*words), "captured work does not run")
	x, err := g.Instantiate()
	require.NoError(t, err)
	require.NoError(t, g.Close())
	require.NoError(t, g.Close())
	one.Put32(8, 555) // the graph has its own copy
	for range 3 {
		during(t, s, func(sec Section) { require.NoError(t, sec.Replay(x)) })
	}
	require.NoError(t, s.Sync(t.Context()))
	for i, got := 0, read(t, d, a.Addr(), 4*words); i < words; i++ {
		require.Equal(t, uint32(3*(1+i)), binary.NativeEndian.Uint32(got[4*i:]), "word %d", i)
	}
	require.NoError(t, x.Close())
	require.NoError(t, x.Close())
}

func testFailedCapture(t *testing.T, m machine) {
	d := m.open(t, 0)
	s := newStream(t, d)
	mem := memory(t, d, 100)
	wrong := errors.New("wrong")
	_, err := s.Capture(func() error { return errors.Join(s.Copy(mem.Addr(), mem.Addr()+50, 50), wrong) })
	require.ErrorIs(t, err, wrong)
	capturing, err := s.Capturing()
	require.NoError(t, err)
	require.False(t, capturing)
	require.NoError(t, s.Sync(t.Context()))
	_, err = s.EndCapture()
	require.Error(t, err, "no capture began")

	// What cannot be asked while it is recorded is an error, not a hang.
	require.NoError(t, s.BeginCapture())
	err = s.Sync(t.Context())
	require.ErrorIs(t, err, goccl.ErrInvalid)
	if g, err := s.EndCapture(); err == nil { // the driver may call it spoilt
		require.NoError(t, g.Close())
	}
	require.NoError(t, s.Sync(t.Context()))
}

func testForkedCapture(t *testing.T, m machine) {
	d := m.open(t, 0)
	s, side := newStream(t, d), newStream(t, d)
	fill := kernel(t, d, "fill")
	mem := memory(t, d, 8000)
	fork, err := d.NewEvent()
	require.NoError(t, err)
	join, err := d.NewEvent()
	require.NoError(t, err)
	shape := Shape{Block: [3]int{64}}
	g, err := s.Capture(func() error {
		sec, err := s.Enter()
		if err != nil {
			return err
		}
		defer sec.Leave()
		return errors.Join(sec.RecordTo(fork), sec.On(side).Wait(fork),
			sec.On(side).Launch(filling(t, fill, shape, mem.Addr()+4000, 2000, 1000)), sec.On(side).RecordTo(join),
			sec.Launch(filling(t, fill, shape, mem.Addr(), 1000, 1000)), sec.Wait(join))
	})
	require.NoError(t, err)
	x, err := g.Instantiate()
	require.NoError(t, err)
	during(t, s, func(sec Section) { require.NoError(t, sec.Replay(x)) })
	require.NoError(t, s.Sync(t.Context()))
	requireCounting(t, read(t, d, mem.Addr(), 8000), 1000)
	require.NoError(t, x.Close())
	require.NoError(t, g.Close())
	fork.Release()
	join.Release()
}

// Another part of the process captures in global mode, on a thread of its own.
// What this package does meanwhile must not end that capture.
func testForeignCapture(t *testing.T, m machine) {
	d := m.open(t, 0)
	theirs, mine := newStream(t, d), newStream(t, d)
	mem := memory(t, d, 100)
	p, err := mine.Record()
	require.NoError(t, err)
	began, finish, ended := make(chan error), make(chan struct{}), make(chan error)
	var g Graph
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		began <- m.within(d.ctx, func() error { return m.do(cuStreamBeginCapture, theirs.handle, captureGlobal) })
		<-finish
		ended <- m.within(d.ctx, func() error {
			return errors.Join(m.do(cuMemsetD8Async, mem.Addr(), 1, 100, theirs.handle),
				m.do(cuStreamEndCapture, theirs.handle, uintptr(unsafe.Pointer(&g.handle))))
		})
	}()
	require.NoError(t, <-began)
	done, err := p.Done()
	require.NoError(t, err)
	require.True(t, done)
	p.Release()
	require.NoError(t, d.Write(t.Context(), mem.Addr(), pattern(100, 1)))
	require.NoError(t, memory(t, d, 1000).Free())
	require.NoError(t, pinned(t, d, 1000).Free())
	e, err := d.NewTimer()
	require.NoError(t, err)
	e.Release()
	require.NoError(t, mine.Sync(t.Context()))
	_ = kernel(t, d, "fill")
	_, err = d.Pointer(mem.Addr())
	require.NoError(t, err)
	close(finish)
	require.NoError(t, <-ended, "the other's capture was ended")
	require.NotZero(t, g.handle)
	require.NoError(t, m.do(cuGraphDestroy, g.handle))
}
