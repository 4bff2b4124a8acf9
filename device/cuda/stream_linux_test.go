package cuda

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
)

func testTimers(t *testing.T, m machine) {
	d := m.open(t, 0)
	s := newStream(t, d)
	begin, err := d.NewTimer()
	require.NoError(t, err)
	end, err := d.NewTimer()
	require.NoError(t, err)
	mem := memory(t, d, 64<<10)
	during(t, s, func(sec Section) {
		require.NoError(t, sec.RecordTo(begin))
		require.NoError(t, sec.Fill(mem.Addr(), 3, 64<<10))
		require.NoError(t, sec.RecordTo(end))
	})
	require.NoError(t, end.Wait(t.Context()))
	took, err := end.Elapsed(begin)
	require.NoError(t, err)
	require.Positive(t, took)
	require.Less(t, took, time.Minute)
	begin.Release()
	end.Release()
	never, err := d.NewEvent()
	require.NoError(t, err)
	done, err := never.Done()
	require.NoError(t, err)
	require.True(t, done, "an event that was never recorded")
	never.Release()
}

func testForeignStreams(t *testing.T, m machine) {
	d := m.open(t, 0)
	theirs := newStream(t, d)
	mem := memory(t, d, 1000)
	host := pinned(t, d, 1000)
	copy(host.Host(), pattern(1000, 3))
	for _, handle := range []uintptr{theirs.Handle(), 0, legacyStream} {
		s, err := d.WrapStream(handle)
		require.NoError(t, err)
		require.NotZero(t, s.Handle())
		require.Same(t, d, s.Device())
		require.NoError(t, s.Copy(mem.Addr(), host.Addr(), 1000))
		require.NoError(t, s.Sync(t.Context()))
		require.Equal(t, pattern(1000, 3), read(t, d, mem.Addr(), 1000))
		require.NoError(t, s.Close())
		require.NoError(t, s.Close())
	}
	require.NoError(t, theirs.Sync(t.Context()), "a wrapped stream is left alone")
	_, err := d.WrapStream(perThreadStream)
	require.ErrorIs(t, err, goccl.ErrInvalid)
	if m.fake == nil {
		return // what the driver says of a handle that is none is its own affair
	}
	_, err = d.WrapStream(0xdead0)
	require.ErrorIs(t, err, goccl.ErrInvalid)
	_, err = m.open(t, 1).WrapStream(theirs.Handle())
	require.ErrorIs(t, err, goccl.ErrInvalid)
	require.ErrorContains(t, err, "Driver.WrapContext")
}

func testForeignEvents(t *testing.T, m machine) {
	d := m.open(t, 0)
	s, other := newStream(t, d), newStream(t, d)
	theirs, err := d.NewEvent()
	require.NoError(t, err)
	open := gate(t, s)
	defer open()
	during(t, s, func(sec Section) { require.NoError(t, sec.RecordTo(theirs)) })
	e, err := d.WrapEvent(theirs.Handle())
	require.NoError(t, err)
	require.NoError(t, other.WaitEvent(e))
	after, err := other.Record()
	require.NoError(t, err)
	done, err := after.Done()
	require.NoError(t, err)
	require.False(t, done)
	e.Release()
	open()
	require.NoError(t, after.Wait(t.Context()))
	done, err = theirs.Done()
	require.NoError(t, err, "a wrapped event is left alone")
	require.True(t, done)
	theirs.Release()
	after.Release()
	_, err = d.WrapEvent(0)
	require.ErrorIs(t, err, goccl.ErrInvalid)
}

func testForeignContext(t *testing.T, m machine) {
	theirs := m.open(t, 0)
	ctx := theirs.Context()
	if m.fake != nil {
		make, err := m.fake.lib.Lookup("fake_context")
		require.NoError(t, err)
		ctx = make.Call(0)
		require.NotEqual(t, theirs.Context(), ctx)
	}
	d, err := m.WrapContext(ctx)
	require.NoError(t, err)
	require.Equal(t, ctx, d.Context())
	require.Equal(t, theirs.ID(), d.ID())
	mem, err := d.AllocMemory(100)
	require.NoError(t, err)
	require.NoError(t, d.Write(t.Context(), mem.Addr(), pattern(100, 9)))
	require.Equal(t, pattern(100, 9), read(t, d, mem.Addr(), 100))
	require.NoError(t, mem.Free())
	require.NoError(t, d.Close())
	require.NoError(t, memory(t, theirs, 10).Free(), "closing a wrapped context leaves it alone")
	_, err = m.WrapContext(0)
	require.ErrorIs(t, err, goccl.ErrInvalid)
}

// What the package documents as needing no current context is called on a thread
// that has none.
func testWithoutContext(t *testing.T, m machine) {
	d := m.open(t, 0)
	s := newStream(t, d)
	e, err := s.Record()
	require.NoError(t, err)
	p, err := d.NewPhysical(1)
	require.NoError(t, err)
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		_, err := e.Done()
		if err == nil {
			err = e.Wait(t.Context())
		}
		if err == nil {
			var mapped *Memory
			if mapped, err = p.Map(); err == nil {
				err = mapped.Free()
			}
		}
		failed <- err
	}()
	require.NoError(t, <-failed)
	require.NoError(t, p.Release())
	e.Release()
}

func testWords(t *testing.T, m machine) {
	d := m.open(t, 0)
	a, b := newStream(t, d), newStream(t, d)
	mem, host := memory(t, d, 64), pinned(t, d, 4096)
	narrow := (*atomic.Uint32)(unsafe.Pointer(&host.Host()[8]))
	wide := (*atomic.Uint64)(unsafe.Pointer(&host.Host()[16]))
	during(t, a, func(sec Section) {
		require.NoError(t, sec.WaitValue64(mem.Addr()+8, 1<<40+5, AtLeast))
		require.NoError(t, sec.WriteValue32(host.DeviceAddr()+8, 77))
		require.NoError(t, sec.WaitValue32(host.DeviceAddr(), 6, AnyBit))
		require.NoError(t, sec.WriteValue64(host.DeviceAddr()+16, 1<<50+3))
	})
	end, err := a.Record()
	require.NoError(t, err)
	during(t, b, func(sec Section) { require.NoError(t, sec.WriteValue64(mem.Addr()+8, 1<<40+4)) })
	require.NoError(t, b.Sync(t.Context()))
	require.Zero(t, narrow.Load(), "one short of what is waited for")
	during(t, b, func(sec Section) { require.NoError(t, sec.WriteValue64(mem.Addr()+8, 1<<40+6)) })
	require.NoError(t, b.Sync(t.Context()))
	word(host).Store(1)
	for range 20 {
		done, err := end.Done()
		require.NoError(t, err)
		require.False(t, done, "no bit of 6 is in 1")
	}
	word(host).Store(4)
	require.NoError(t, end.Wait(t.Context()))
	require.EqualValues(t, 77, narrow.Load())
	require.EqualValues(t, 1<<50+3, wide.Load())
	end.Release()
}

func testBatch(t *testing.T, m machine) {
	d := m.open(t, 0)
	s := newStream(t, d)
	host := pinned(t, d, 4096)
	var b Batch
	fill := func(round int) {
		b.Reset()
		b.Write32(host.DeviceAddr(), uint32(round))
		b.Wait32(host.DeviceAddr(), uint32(round), Equal)
		b.Write64(host.DeviceAddr()+8, uint64(round)<<40)
		b.Wait64(host.DeviceAddr()+8, 1<<40, AtLeast)
		b.Wait64(host.DeviceAddr()+8, 1, NoneOf)
	}
	for round := 1; round < 4; round++ {
		fill(round)
		if m.fake != nil {
			m.fake.calls()
		}
		during(t, s, func(sec Section) { require.NoError(t, sec.Batch(&b)) })
		if m.fake != nil && round == 2 {
			require.Equal(t, []string{"cuStreamBatchMemOp 5", "2 2 0", "1 2 1", "5 2199023255552 0", "4 1099511627776 0", "4 1 3"}, m.fake.calls())
		}
		require.NoError(t, s.Sync(t.Context()))
		require.EqualValues(t, round, word(host).Load())
	}
	b.Reset()
	during(t, s, func(sec Section) { require.NoError(t, sec.Batch(&b)) })
	for range maxBatch + 1 {
		b.Write32(host.DeviceAddr(), 1)
	}
	during(t, s, func(sec Section) { require.ErrorIs(t, sec.Batch(&b), goccl.ErrInvalid) })
}

func testNoAllocation(t *testing.T, m machine) {
	if raceOn {
		t.Skip("the race detector empties pools")
	}
	d := m.open(t, 0)
	s := newStream(t, d)
	mem, host := memory(t, d, 4096), pinned(t, d, 4096)
	l := filling(t, kernel(t, d, "fill"), Shape{Block: [3]int{32}}, mem.Addr(), 1, 10)
	e, err := d.NewEvent()
	require.NoError(t, err)
	defer e.Release()
	var b Batch
	b.Write32(host.DeviceAddr(), 1)
	b.Wait32(host.DeviceAddr(), 1, Equal)
	g, err := s.Capture(func() error { return s.Copy(mem.Addr(), host.Addr(), 16) })
	require.NoError(t, err)
	x, err := g.Instantiate()
	require.NoError(t, err)
	fail := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		sec, err := s.Enter()
		fail(err)
		fail(sec.Wait(e))
		l.Put32(8, 5)
		fail(sec.Launch(l))
		fail(sec.Copy(mem.Addr(), host.Addr(), 100))
		fail(sec.Fill(mem.Addr(), 0, 100))
		fail(sec.WriteValue32(host.DeviceAddr(), 3))
		fail(sec.Batch(&b))
		fail(sec.Replay(x))
		fail(sec.RecordTo(e))
		sec.Leave()
		_, err = e.Done()
		fail(err)
		fail(e.Wait(t.Context()))
		again, err := s.Record()
		fail(err)
		fail(again.Wait(t.Context()))
		again.Release()
		_, err = d.Pointer(mem.Addr() + 8)
		fail(err)
	}))
	require.NoError(t, x.Close())
	require.NoError(t, g.Close())
}
