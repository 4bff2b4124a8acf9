package cuda

import (
	"errors"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/dl"
)

// BenchmarkGPU is what calls cost the host, with the GPU keeping up.
func BenchmarkGPU(b *testing.B) {
	m := newGPUs(b, 1)
	d := m.open(b, 0)
	s := newStream(b, d)
	mem, host := memory(b, d, 1<<20), pinned(b, d, 4096)
	k := kernel(b, d, "fill")
	plain := filling(b, k, Shape{Block: [3]int{32}}, mem.Addr(), 1, 1)
	overlap := filling(b, k, Shape{Block: [3]int{32}, Overlap: true}, mem.Addr(), 1, 1)
	e, err := d.NewEvent()
	require.NoError(b, err)
	defer e.Release()
	var batch Batch
	for range 2 {
		batch.Write32(host.DeviceAddr(), 1)
		batch.Wait32(host.DeviceAddr(), 1, Equal)
	}
	x := twenty(b, s, plain)
	for name, run := range map[string]func(sec Section) error{
		"launch":              func(sec Section) error { return sec.Launch(plain) },
		"launch with overlap": func(sec Section) error { return sec.Launch(overlap) },
		"copy 8 bytes":        func(sec Section) error { return sec.Copy(mem.Addr(), mem.Addr()+64, 8) },
		"record":              func(sec Section) error { return sec.RecordTo(e) },
		"wait":                func(sec Section) error { return sec.Wait(e) },
		"write word":          func(sec Section) error { return sec.WriteValue32(host.DeviceAddr(), 1) },
		"batch of 4 words":    func(sec Section) error { return sec.Batch(&batch) },
		"replay of 20":        func(sec Section) error { return sec.Replay(x) },
		"done":                func(Section) error { _, err := e.Done(); return err },
		"pointer":             func(Section) error { _, err := d.Pointer(mem.Addr() + 10); return err },
		"enter and leave": func(Section) error {
			sec, err := s.Enter()
			sec.Leave()
			return err
		},
	} {
		b.Run(name, func(b *testing.B) { repeat(b, s, run) })
	}
	b.Run("launch and sync", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			sec, err := s.Enter()
			require.NoError(b, err)
			err = sec.Launch(plain)
			sec.Leave() // a section is not for waiting
			require.NoError(b, errors.Join(err, s.Sync(b.Context())))
		}
	})
}

// repeat times run in one section. The queue is emptied now and then: one that is
// full would be what is measured.
func repeat(b *testing.B, s *Stream, run func(sec Section) error) {
	sec, err := s.Enter()
	require.NoError(b, err)
	defer sec.Leave()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := run(sec); err != nil {
			b.Fatal(err)
		}
		if i%512 == 511 {
			b.StopTimer()
			require.NoError(b, s.Sync(b.Context()))
			b.StartTimer()
		}
	}
	require.NoError(b, s.Sync(b.Context()))
}

// twenty returns a graph of 20 launches.
func twenty(b *testing.B, s *Stream, l *Launch) *Executable {
	b.Helper()
	g, err := s.Capture(func() error {
		sec, err := s.Enter()
		if err != nil {
			return err
		}
		defer sec.Leave()
		for range 20 {
			err = errors.Join(err, sec.Launch(l))
		}
		return err
	})
	require.NoError(b, err)
	x, err := g.Instantiate()
	require.NoError(b, err)
	require.NoError(b, g.Close())
	b.Cleanup(func() { require.NoError(b, x.Close()) })
	return x
}

// TestGPUWhatNeedsAContext prints which calls the driver answers on a thread
// without a current context, to see how far the documentation holds.
func TestGPUWhatNeedsAContext(t *testing.T) {
	m := newGPUs(t, 1)
	d := m.open(t, 0)
	s := newStream(t, d)
	mem, host := memory(t, d, 4096), pinned(t, d, 4096)
	l := filling(t, kernel(t, d, "fill"), Shape{Block: [3]int{32}}, mem.Addr(), 1, 1)
	l.config.stream = s.handle
	e, err := d.NewEvent()
	require.NoError(t, err)
	codes := map[string]Code{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		try := func(p proc, args ...uintptr) { codes[p.String()] = Code(dl.Int32(m.procs[p].Call(args...))) }
		try(cuEventRecord, e.handle, s.handle)
		try(cuEventQuery, e.handle)
		try(cuStreamWaitEvent, s.handle, e.handle, 0)
		try(cuMemcpyAsync, mem.Addr(), host.Addr(), 8, s.handle)
		try(cuMemsetD8Async, mem.Addr(), 0, 8, s.handle)
		try(cuStreamWriteValue32, s.handle, host.DeviceAddr(), 1, 0)
		try(cuLaunchKernelEx, uintptr(unsafe.Pointer(&l.config)), l.kernel.handle, 0, uintptr(unsafe.Pointer(&l.extra[0])))
	}()
	<-done
	require.NoError(t, s.Sync(t.Context()))
	for call, code := range codes {
		t.Logf("%s: %d", call, code)
	}
	require.Len(t, codes, 7)
	require.Contains(t, []Code{0, NotReady}, codes["cuEventQuery"], "Event.Done enters no context")
	e.Release()
}
