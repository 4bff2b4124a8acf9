package cuda

import (
	"encoding/binary"
	"errors"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/internal/dl"
)

func module(t testing.TB, d *Device) *Module {
	t.Helper()
	m, err := d.LoadModule(kernels)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Unload()) })
	return m
}

func kernel(t testing.TB, d *Device, name string) *Kernel {
	t.Helper()
	k, err := module(t, d).Kernel(name)
	require.NoError(t, err)
	return k
}

// filling makes a launch of fill over n words.
func filling(t testing.TB, k *Kernel, shape Shape, dst uintptr, v uint32, n int) *Launch {
	t.Helper()
	l, err := k.NewLaunch(shape, 16)
	require.NoError(t, err)
	l.Put64(0, uint64(dst))
	l.Put32(8, v)
	l.Put32(12, uint32(n))
	return l
}

// requireCounting demands words that count from first.
func requireCounting(t testing.TB, b []byte, first uint32) {
	t.Helper()
	for i := 0; i < len(b); i += 4 {
		if got := binary.NativeEndian.Uint32(b[i:]); got != first+uint32(i/4) {
			t.Fatalf("word %d is %d, want %d", i/4, got, first+uint32(i/4))
		}
	}
}

func testKernels(t *testing.T, m machine) {
	d := m.open(t, 0)
	mod := module(t, d)
	fill, err := mod.Kernel("fill")
	require.NoError(t, err)
	add, err := mod.Kernel("add")
	require.NoError(t, err)
	t.Logf("%s: %+v", fill.Name(), fill.Info())
	require.Equal(t, 1024, fill.Info().MaxThreads)
	require.Positive(t, fill.Info().Registers)
	require.Zero(t, fill.Info().LocalBytes)
	require.GreaterOrEqual(t, fill.Info().MaxShared, 48000)
	n, err := fill.Occupancy(256, 0)
	require.NoError(t, err)
	require.Positive(t, n)
	none, err := fill.Occupancy(2048, 0)
	if err == nil {
		require.Zero(t, none)
	}

	addr, bytes, err := mod.Global("answer")
	require.NoError(t, err)
	require.Equal(t, 8, bytes)
	require.Equal(t, []byte{42, 0, 0, 0, 0, 0, 0, 0}, read(t, d, addr, 8))

	const words = 100_003
	s := newStream(t, d)
	a, b := memory(t, d, 4*words), memory(t, d, 4*words)
	sum, err := add.NewLaunch(Shape{Grid: [3]int{7}, Block: [3]int{96}}, 20)
	require.NoError(t, err)
	sum.Put64(0, uint64(a.Addr()))
	sum.Put64(8, uint64(b.Addr()))
	sum.Put32(16, words)
	during(t, s, func(sec Section) {
		require.NoError(t, sec.Launch(filling(t, fill, Shape{Grid: [3]int{5}, Block: [3]int{128}}, a.Addr(), 10, words)))
		one := filling(t, fill, Shape{}, b.Addr(), 0, words) // one thread
		one.SetGrid(3)
		require.NoError(t, sec.Launch(one))
		require.NoError(t, sec.Launch(sum))
		one.Put32(8, 1000) // the driver has read the arguments already
	})
	require.NoError(t, s.Sync(t.Context()))
	for i, got := 0, read(t, d, a.Addr(), 4*words); i < words; i++ {
		require.Equal(t, uint32(10+2*i), binary.NativeEndian.Uint32(got[4*i:]), "word %d", i)
	}
}

func testLaunchAttributes(t *testing.T, m machine) {
	d := m.open(t, 0)
	s := newStream(t, d)
	k := kernel(t, d, "fill")
	mem := memory(t, d, 4000)
	shapes := []Shape{{Grid: [3]int{4}, Block: [3]int{32}, Overlap: true}, {Grid: [3]int{4, 1, 1}, Block: [3]int{8, 4, 2}, Cooperative: true, Shared: 1000}}
	if d.Info().ComputeCap >= 90 {
		shapes = append(shapes, Shape{Grid: [3]int{4}, Block: [3]int{32}, Cluster: 2, Overlap: true})
	}
	for i, shape := range shapes {
		first := uint32(i * 10000)
		l := filling(t, k, shape, mem.Addr(), first, 1000)
		require.Same(t, k, l.Kernel())
		require.Len(t, l.Args(), 16)
		runtime.GC() // nothing keeps what the launch points to but the launch
		if m.fake != nil {
			m.fake.calls()
		}
		during(t, s, func(sec Section) { require.NoError(t, sec.Launch(l)) })
		if m.fake != nil {
			require.Equal(t, [][]string{
				{"cuLaunchKernelEx fill grid 4 1 1 block 32 1 1 shared 0", "attribute 6 1 0 0", "16 bytes of arguments"},
				{"cuLaunchKernelEx fill grid 4 1 1 block 8 4 2 shared 1000", "attribute 2 1 0 0", "16 bytes of arguments"},
				{"cuLaunchKernelEx fill grid 4 1 1 block 32 1 1 shared 0", "attribute 4 2 1 1", "attribute 6 1 0 0", "16 bytes of arguments"},
			}[i], m.fake.calls())
		}
		require.NoError(t, s.Sync(t.Context()))
		if i != 1 { // fill uses one dimension of a block
			requireCounting(t, read(t, d, mem.Addr(), 4000), first)
		}
	}
}

func testLaunchChecks(t *testing.T, m machine) {
	d := m.open(t, 0)
	k := kernel(t, d, "fill")
	for name, c := range map[string]struct {
		shape Shape
		args  int
		want  string
	}{
		"threads":  {Shape{Block: [3]int{1024, 2}}, 0, "blocks of 2048 threads, at most 1024"},
		"negative": {Shape{Grid: [3]int{-1}}, 0, "a grid of [-1 0 0] blocks"},
		"shared":   {Shape{Shared: 100_000}, 0, "100000 bytes of dynamic shared memory, at most"},
		"cluster":  {Shape{Grid: [3]int{5}, Cluster: 2}, 0, "a grid of 5 blocks in clusters of 2"},
		"args":     {Shape{}, 5000, "5000 bytes of arguments, at most 4096"},
	} {
		_, err := k.NewLaunch(c.shape, c.args)
		if name == "cluster" && d.Info().ComputeCap < 90 {
			require.ErrorIs(t, err, goccl.ErrUnsupported)
			continue
		}
		require.ErrorIs(t, err, goccl.ErrInvalid, name)
		require.ErrorContains(t, err, c.want)
		require.ErrorContains(t, err, "cuda:0: kernel fill")
	}
	s, err := d.Stream(0)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	_, err = s.Enter()
	require.ErrorIs(t, err, goccl.ErrClosed)
}

func testDynamicShared(t *testing.T, m machine) {
	d := m.open(t, 0)
	s := newStream(t, d)
	k := kernel(t, d, "top")
	most := d.Info().SharedBytes
	_, err := k.NewLaunch(Shape{Shared: most}, 12)
	require.ErrorIs(t, err, goccl.ErrInvalid)
	require.ErrorContains(t, err, "AllowShared")
	require.NoError(t, k.AllowShared(most))
	require.ErrorIs(t, k.AllowShared(most+1), goccl.ErrInvalid)
	l, err := k.NewLaunch(Shape{Shared: most}, 12)
	require.NoError(t, err)
	mem := memory(t, d, 4)
	l.Put64(0, uint64(mem.Addr()))
	l.Put32(8, uint32(most))
	during(t, s, func(sec Section) { require.NoError(t, sec.Launch(l)) })
	require.NoError(t, s.Sync(t.Context()))
	require.Equal(t, uint32(most), binary.NativeEndian.Uint32(read(t, d, mem.Addr(), 4)))
	n, err := k.Occupancy(128, most)
	require.NoError(t, err)
	require.Equal(t, 1, n)
}

func testBadModules(t *testing.T, m machine) {
	d := m.open(t, 0)
	_, err := d.LoadModule(nil)
	require.ErrorIs(t, err, goccl.ErrInvalid)
	_, err = d.LoadModule([]byte("\x00\x01\x02\x03 no code"))
	require.Error(t, err)
	bad := append([]byte(nil), kernels...)
	at := len(bad) - 4
	copy(bad[at:], "!!!!")
	if m.fake != nil {
		bad = []byte("not PTX")
	}
	_, err = d.LoadModule(bad)
	require.ErrorIs(t, err, goccl.ErrInvalid)
	require.ErrorContains(t, err, "ptxas", "the compiler's words")
	var e *Error
	require.True(t, errors.As(err, &e))
	require.NotEmpty(t, e.Log)
	t.Log(err)

	mod := module(t, d)
	_, err = mod.Kernel("no_such_kernel")
	require.ErrorIs(t, err, &Error{Code: NotFound})
	require.ErrorContains(t, err, "no_such_kernel")
	_, _, err = mod.Global("no_such_variable")
	require.ErrorIs(t, err, goccl.ErrInvalid)
}

func testThreads(t *testing.T, m machine) {
	d := m.open(t, 0)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	lib, err := dl.Open(m.name)
	require.NoError(t, err)
	get, err := lib.Lookup("cuCtxGetCurrent")
	require.NoError(t, err)
	current := func() (ctx uintptr) {
		require.Zero(t, dl.Int32(get.Call(uintptr(unsafe.Pointer(&ctx)))))
		return ctx
	}
	require.Zero(t, current())
	mem := memory(t, d, 100)
	s := newStream(t, d)
	require.NoError(t, s.Sync(t.Context()))
	_, err = d.Alloc(1 << 46)
	require.Error(t, err)
	during(t, s, func(sec Section) {
		require.Equal(t, d.Context(), current())
		during(t, s, func(Section) { require.Equal(t, d.Context(), current()) })
		require.Equal(t, d.Context(), current())
	})
	require.Zero(t, current(), "a context was left on the thread")
	lost := errors.New("not lost")
	require.ErrorIs(t, m.within(d.Context(), func() error {
		require.NoError(t, d.Write(t.Context(), mem.Addr(), pattern(10, 1)))
		require.Equal(t, d.Context(), current())
		return lost
	}), lost)
	require.Zero(t, current())
}
