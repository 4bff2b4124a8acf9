package cuda

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
)

// pattern returns bytes that differ by place and seed.
func pattern(n, seed int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8*13 + seed*101 + 1)
	}
	return b
}

func memory(t testing.TB, d *Device, bytes int) *Memory {
	t.Helper()
	m, err := d.AllocMemory(bytes)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Free()) })
	return m
}

func newStream(t testing.TB, d *Device) *Stream {
	t.Helper()
	s, err := d.Stream(0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// during runs fn in a section of the stream.
func during(t testing.TB, s *Stream, fn func(sec Section)) {
	t.Helper()
	sec, err := s.Enter()
	require.NoError(t, err)
	defer sec.Leave()
	fn(sec)
}

func read(t testing.TB, d *Device, addr uintptr, bytes int) []byte {
	t.Helper()
	b := make([]byte, bytes)
	require.NoError(t, d.Read(t.Context(), b, addr))
	return b
}

func testIdentity(t *testing.T, m machine) {
	all, err := m.Devices()
	require.NoError(t, err)
	require.NotEmpty(t, all)
	t.Log(m.Driver)
	require.GreaterOrEqual(t, m.Version(), minVersion)
	seen := map[UUID]bool{}
	for i, info := range all {
		t.Logf("%+v", info)
		require.Equal(t, i, info.Index)
		require.NotEmpty(t, info.Name)
		require.GreaterOrEqual(t, info.ComputeCap, 50)
		for name, v := range map[string]int{"memory": info.Bytes, "multiprocessors": info.SMs, "L2": info.L2Bytes, "shared memory": info.SharedBytes} {
			require.Positive(t, v, name)
		}
		require.False(t, seen[info.UUID], "two devices of one name")
		seen[info.UUID] = true
		parsed, err := ParseUUID(info.UUID.String())
		require.NoError(t, err)
		byUUID, err := m.ByUUID(parsed)
		require.NoError(t, err)
		require.Equal(t, info, byUUID)
		byPlace, err := m.ByBusID(info.BusID)
		require.NoError(t, err)
		require.Equal(t, info, byPlace)
	}
	_, err = m.ByUUID(UUID{1})
	require.ErrorIs(t, err, goccl.ErrInvalid)
	require.ErrorContains(t, err, all[0].UUID.String())
	_, err = m.ByBusID("ffff:ff:1f.7")
	require.ErrorIs(t, err, goccl.ErrInvalid)
	_, err = m.Open(len(all))
	require.ErrorIs(t, err, goccl.ErrInvalid)
	require.ErrorIs(t, err, &Error{Code: InvalidDevice})

	d := m.open(t, 0)
	require.Equal(t, device.ID{Kind: device.CUDA, Index: 0}, d.ID())
	require.Equal(t, all[0], d.Info())
	free, total, err := d.MemoryInfo()
	require.NoError(t, err)
	require.Positive(t, free)
	require.LessOrEqual(t, free, total)
	first, last, err := d.Priorities()
	require.NoError(t, err)
	require.LessOrEqual(t, first, last)
	s, err := d.Stream(first)
	require.NoError(t, err)
	prio, err := s.Priority()
	require.NoError(t, err)
	require.Equal(t, first, prio)
	require.NoError(t, s.Close())
}

func testHostMemory(t *testing.T, m machine) {
	d := m.open(t, 0)
	s := newStream(t, d)
	p := pinned(t, d, 10000)
	require.Equal(t, make([]byte, 10000), p.Host())
	require.Zero(t, p.Addr()%4096)
	copy(p.Host(), pattern(10000, 1))

	// Memory that somebody else mapped, as segments between processes are.
	span, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
	require.NoError(t, err)
	defer unix.Munmap(span)
	r, err := d.RegisterHost(uintptr(unsafe.Pointer(&span[0])), len(span))
	require.NoError(t, err)
	require.Len(t, r.Host(), len(span))
	during(t, s, func(sec Section) { require.NoError(t, sec.Copy(r.DeviceAddr()+5, p.DeviceAddr(), 10000)) })
	require.NoError(t, s.Sync(t.Context()))
	require.Equal(t, pattern(10000, 1), span[5:10005])
	_, err = d.RegisterHost(uintptr(unsafe.Pointer(&span[0])), len(span))
	require.Error(t, err, "it is pinned already")
	require.NoError(t, r.Free())
	require.NoError(t, r.Free())
	_, err = d.RegisterHost(0, 10)
	require.ErrorIs(t, err, goccl.ErrInvalid)
	_, err = d.AllocPinned(0)
	require.ErrorIs(t, err, goccl.ErrInvalid)
}

func testWriteRead(t *testing.T, m machine) {
	d := m.open(t, 0)
	const bytes = 2*stagingBytes + 12345
	mem := memory(t, d, bytes)
	require.NoError(t, d.Write(t.Context(), mem.Addr(), pattern(bytes, 4)))
	require.Equal(t, pattern(bytes, 4), read(t, d, mem.Addr(), bytes))
	require.Equal(t, pattern(bytes, 4)[777:1001], read(t, d, mem.Addr()+777, 224))
	require.NoError(t, d.Read(t.Context(), nil, mem.Addr()))
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the reason")
	cancel(cause)
	if err := d.Write(ctx, mem.Addr(), pattern(10, 1)); err != nil { // it may have been done at once
		require.ErrorIs(t, err, cause)
	}
	require.NoError(t, d.Write(t.Context(), mem.Addr(), pattern(10, 2)), "a copy that was given up changes nothing for the next")
	require.Equal(t, pattern(10, 2), read(t, d, mem.Addr(), 10))
}

func testFill(t *testing.T, m machine) {
	d := m.open(t, 0)
	s := newStream(t, d)
	mem := memory(t, d, 4096)
	during(t, s, func(sec Section) {
		require.NoError(t, sec.Fill(mem.Addr(), 7, 4096))
		require.NoError(t, sec.Fill32(mem.Addr()+8, 0x01020304, 3))
		require.NoError(t, sec.Fill(mem.Addr(), 9, 0))
		require.NoError(t, sec.Fill32(mem.Addr(), 9, 0))
		require.NoError(t, sec.Copy(mem.Addr(), 0, 0))
	})
	require.NoError(t, s.Sync(t.Context()))
	require.Equal(t, []byte{7, 7, 7, 7, 7, 7, 7, 7, 4, 3, 2, 1, 4, 3, 2, 1, 4, 3, 2, 1, 7, 7}, read(t, d, mem.Addr(), 22))
}

func testOutOfMemory(t *testing.T, m machine) {
	d := m.open(t, 0)
	_, err := d.Alloc(1 << 46)
	require.ErrorIs(t, err, &Error{Code: OutOfMemory, Call: "cuMemAlloc"})
	require.ErrorContains(t, err, fmt.Sprint(1<<46))
	require.ErrorContains(t, err, "cuda:0: cuMemAlloc: error 2 CUDA_ERROR_OUT_OF_MEMORY (out of memory): free memory")
	require.NoError(t, memory(t, d, 100).Free(), "the device goes on")
}

func testPool(t *testing.T, m machine) {
	d := m.open(t, 0)
	s := newStream(t, d)
	p, err := d.NewPool(32 << 20)
	require.NoError(t, err)
	host := pinned(t, d, 1000)
	copy(host.Host(), pattern(1000, 6))
	back := pinned(t, d, 1000)
	during(t, s, func(sec Section) {
		for i := range 5 {
			a, err := sec.Alloc(p, 1000)
			require.NoError(t, err)
			info, err := d.Pointer(a + 10)
			require.NoError(t, err)
			require.Equal(t, OnDevice, info.Place)
			require.NotZero(t, info.Pool, "round %d", i)
			require.NoError(t, sec.Copy(a, host.DeviceAddr(), 1000))
			require.NoError(t, sec.Copy(back.DeviceAddr(), a, 1000))
			_, err = d.Share(a)
			require.ErrorIs(t, err, goccl.ErrUnsupported)
			require.NoError(t, sec.Free(a))
		}
		_, err := sec.Alloc(p, 0)
		require.ErrorIs(t, err, goccl.ErrInvalid)
	})
	require.NoError(t, s.Sync(t.Context()))
	require.Equal(t, pattern(1000, 6), back.Host())
	require.NoError(t, p.Allow())
	require.NoError(t, p.Trim(0))
	require.NoError(t, p.Close())
	require.NoError(t, p.Close())
}

// One piece of physical memory, seen at two addresses, and through a descriptor.
func testPhysical(t *testing.T, m machine) {
	d := m.open(t, 0)
	p, err := d.NewPhysical(3 << 20)
	require.NoError(t, err)
	require.GreaterOrEqual(t, p.Bytes(), 3<<20)
	a, err := p.Map()
	require.NoError(t, err)
	b, err := p.Map()
	require.NoError(t, err)
	require.NotEqual(t, a.Addr(), b.Addr())
	require.Equal(t, p.Bytes(), a.Bytes())
	end := uintptr(p.Bytes() - 500)
	require.NoError(t, d.Write(t.Context(), a.Addr()+end, pattern(500, 2)))
	require.Equal(t, pattern(500, 2), read(t, d, b.Addr()+end, 500))

	f, err := p.Export()
	require.NoError(t, err)
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFD, 0)
	require.NoError(t, err)
	require.NotZero(t, flags&unix.FD_CLOEXEC)
	imported, err := d.ImportPhysical(f, p.Bytes())
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.NoError(t, p.Release())
	require.NoError(t, p.Release())
	c, err := imported.Map()
	require.NoError(t, err)
	require.NoError(t, imported.Release())
	require.NoError(t, a.Free())
	require.NoError(t, b.Free())
	require.Equal(t, pattern(500, 2), read(t, d, c.Addr()+end, 500), "a mapping keeps the memory")
	require.ErrorIs(t, d.Close(), goccl.ErrInvalid)
	require.NoError(t, c.Free())
	_, err = d.NewPhysical(0)
	require.ErrorIs(t, err, goccl.ErrInvalid)
}

func testPointers(t *testing.T, m machine) {
	d := m.open(t, 0)
	ask := func(addr uintptr) Pointer {
		t.Helper()
		p, err := d.Pointer(addr)
		require.NoError(t, err)
		return p
	}
	mem := memory(t, d, 5<<20)
	inner := ask(mem.Addr() + 12345)
	require.Equal(t, OnDevice, inner.Place)
	require.Equal(t, 0, inner.Device)
	require.Equal(t, d.Context(), inner.Context)
	require.Equal(t, mem.Addr(), inner.Base)
	require.GreaterOrEqual(t, inner.Bytes, 5<<20)
	require.NotZero(t, inner.BufferID)
	require.True(t, inner.IPC)
	require.False(t, inner.Managed)
	require.Zero(t, inner.Pool)
	require.Equal(t, inner, ask(mem.Addr()))
	require.NotEqual(t, inner.BufferID, ask(memory(t, d, 5<<20).Addr()).BufferID)

	host := pinned(t, d, 4096)
	require.Equal(t, OnHost, ask(host.Addr()+100).Place)
	var local [4]byte
	require.Equal(t, Pointer{}, ask(uintptr(unsafe.Pointer(&local))))
	require.Equal(t, Pointer{}, ask(0))
	require.Equal(t, Pointer{}, ask(0xdead000))

	p, err := d.NewPhysical(1)
	require.NoError(t, err)
	mapped, err := p.Map()
	require.NoError(t, err)
	info := ask(mapped.Addr() + 1)
	require.Equal(t, OnDevice, info.Place)
	require.False(t, info.IPC)
	require.True(t, info.FD)
	_, err = d.Share(mapped.Addr())
	require.ErrorIs(t, err, goccl.ErrUnsupported)
	_, err = d.Share(host.Addr())
	require.ErrorIs(t, err, goccl.ErrInvalid)
	require.NoError(t, mapped.Free())
	require.NoError(t, p.Release())
	require.Equal(t, "device host elsewhere place(9)", fmt.Sprint(OnDevice, OnHost, Elsewhere, Place(9)))
}

func testPeers(t *testing.T, m machine) {
	a, b := m.open(t, 0), m.open(t, 1)
	same, err := a.Peer(a)
	require.NoError(t, err)
	require.Equal(t, Peer{Access: true, Atomics: true}, same)
	peer, err := a.Peer(b)
	require.NoError(t, err)
	t.Logf("%+v", peer)
	onA, onB := memory(t, a, 1<<20), memory(t, b, 1<<20)
	s := newStream(t, a)
	require.NoError(t, a.Write(t.Context(), onA.Addr(), pattern(1<<20, 1)))
	during(t, s, func(sec Section) { require.NoError(t, sec.CopyPeer(onB.Addr(), b, onA.Addr(), a, 1<<20)) })
	require.NoError(t, s.Sync(t.Context()))
	require.Equal(t, pattern(1<<20, 1), read(t, b, onB.Addr(), 1<<20))
	if !peer.Access {
		require.ErrorIs(t, a.EnablePeer(b), goccl.ErrUnsupported)
		t.Skip("these GPUs cannot reach each other")
	}
	for range 2 {
		require.NoError(t, a.EnablePeer(b))
	}
	require.NoError(t, a.EnablePeer(a))
	k := kernel(t, a, "fill")
	l, err := k.NewLaunch(Shape{Grid: [3]int{4}, Block: [3]int{128}}, 16)
	require.NoError(t, err)
	l.Put64(0, uint64(onB.Addr()))
	l.Put32(8, 7000)
	l.Put32(12, 1<<18)
	during(t, s, func(sec Section) { require.NoError(t, sec.Launch(l)) })
	require.NoError(t, s.Sync(t.Context()))
	requireCounting(t, read(t, b, onB.Addr(), 1<<20), 7000)
}

func TestFakePeersThatCannot(t *testing.T) {
	m := newFake(t)
	m.fake.change("peers", 0)
	a, b := m.open(t, 0), m.open(t, 1)
	require.ErrorIs(t, a.EnablePeer(b), goccl.ErrUnsupported)
	require.ErrorContains(t, a.EnablePeer(b), "cuda:0")
	require.ErrorContains(t, a.EnablePeer(b), "cuda:1")
}

// Physical memory of one device, mapped so that the other's kernels reach it.
func testPeerMapping(t *testing.T, m machine) {
	a, b := m.open(t, 0), m.open(t, 1)
	if peer, err := b.Peer(a); err != nil || !peer.Access {
		t.Skip("these GPUs cannot reach each other")
	}
	p, err := a.NewPhysical(1 << 20)
	require.NoError(t, err)
	mapped, err := p.Map(b)
	require.NoError(t, err)
	require.NoError(t, p.Release())
	s := newStream(t, b)
	l, err := kernel(t, b, "fill").NewLaunch(Shape{Grid: [3]int{2}, Block: [3]int{64}}, 16)
	require.NoError(t, err)
	l.Put64(0, uint64(mapped.Addr()))
	l.Put32(8, 99)
	l.Put32(12, 1<<18)
	during(t, s, func(sec Section) { require.NoError(t, sec.Launch(l)) })
	require.NoError(t, s.Sync(t.Context()))
	requireCounting(t, read(t, a, mapped.Addr(), 1<<20), 99)
	require.NoError(t, mapped.Free())
}

func testCrossDevice(t *testing.T, m machine) {
	a, b := m.open(t, 0), m.open(t, 1)
	first, second := newStream(t, a), newStream(t, b)
	open := gate(t, first)
	defer open()
	e, err := first.Record()
	require.NoError(t, err)
	require.NoError(t, second.WaitEvent(e))
	after, err := second.Record()
	require.NoError(t, err)
	done, err := after.Done()
	require.NoError(t, err)
	require.False(t, done)
	open()
	require.NoError(t, after.Wait(t.Context()))
	e.Release()
	after.Release()
	require.Panics(t, func() { during(t, first, func(sec Section) { sec.On(second) }) })
}

// Each goroutine takes and gives back pinned words: the allocator of the driver
// must not be confused by threads that change.
func TestFakeMigration(t *testing.T) {
	m := newFake(t)
	d := m.open(t, 0)
	var failures atomic.Int32
	done := make(chan struct{})
	for g := range 8 {
		go func() {
			defer func() { done <- struct{}{} }()
			for range 50 {
				p, err := d.AllocPinned(64 + g)
				runtime.Gosched()
				if err != nil || p.Free() != nil {
					failures.Add(1)
				}
			}
		}()
	}
	for range 8 {
		<-done
	}
	require.Zero(t, failures.Load())
	require.Zero(t, m.fake.number(t, "fake_depth"), "a context was left on a thread")
}
