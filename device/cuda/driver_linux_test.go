package cuda

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
)

func TestFakeDriverThatCannotBeUsed(t *testing.T) {
	f := modelOf(t)
	for _, c := range []struct {
		what string
		v    int
		want string
	}{
		{"version", 11080, "knows CUDA up to 11.8, 12.0 is needed: update it to 525 or newer"},
		{"devices", 0, "cuInit: error 100 CUDA_ERROR_FAKE (as planned): no GPU is visible; look at CUDA_VISIBLE_DEVICES"},
		{"cuInit", int(DriverMismatch), "cuInit: error 803 CUDA_ERROR_FAKE (as planned): libcuda and the kernel module differ"},
		{"cuInit", int(SystemNotReady), "nvidia-fabricmanager"},
	} {
		f.change("version", 12080)
		f.change("devices", 2)
		f.change(c.what, c.v)
		_, err := open(f.lib.Name())
		require.ErrorIs(t, err, goccl.ErrUnsupported, "%s %d", c.what, c.v)
		require.ErrorContains(t, err, c.want)
	}
}

// A library that is no driver names what it lacks.
func TestLibraryThatIsNoDriver(t *testing.T) {
	_, err := open("libc.so.6")
	require.ErrorIs(t, err, goccl.ErrUnsupported)
	require.ErrorContains(t, err, "libc.so.6 lacks cuDriverGetVersion")
}

func TestFakeErrors(t *testing.T) {
	m := newFake(t)
	d := m.open(t, 0)
	s := newStream(t, d)
	plan := func(call string, code Code) error {
		m.fake.change(call, int(code))
		return s.Copy(1, 2, 3)
	}
	err := plan("cuMemcpyAsync", IllegalAddress)
	require.ErrorIs(t, err, goccl.ErrAborted)
	require.EqualError(t, err, "cuda:0: cuMemcpyAsync: error 700 CUDA_ERROR_FAKE (as planned): a kernel used a wrong address; the context is lost, the process must end")
	err = plan("cuMemcpyAsync", 12345)
	require.EqualError(t, err, "cuda:0: cuMemcpyAsync: error 12345", "a code that the driver does not know")
	err = plan("cuCtxPushCurrent", Deinitialized)
	require.ErrorIs(t, err, goccl.ErrClosed)
	require.False(t, (&Error{Code: 1, Call: "a"}).Is(&Error{Code: 1, Call: "b"}))
	require.False(t, (&Error{Code: 1}).Is(fmt.Errorf("x")))
}

// Whatever step of making a thing fails, nothing is left of it.
func TestFakeFailuresLeaveNothing(t *testing.T) {
	m := newFake(t)
	d := m.open(t, 0)
	makers := map[string]func() error{
		"Alloc":        func() error { _, err := d.Alloc(100); return err },
		"AllocPinned":  func() error { _, err := d.AllocPinned(100); return err },
		"Stream":       func() error { _, err := d.Stream(0); return err },
		"NewPool":      func() error { _, err := d.NewPool(1); return err },
		"NewPhysical":  func() error { _, err := d.NewPhysical(1); return err },
		"NewEvent":     func() error { _, err := d.NewEvent(); return err },
		"LoadModule":   func() error { _, err := d.LoadModule(kernels); return err },
		"Open":         func() error { _, err := m.Open(1); return err },
		"EnablePeer":   func() error { return d.EnablePeer(m.open(t, 1)) },
		"BeginCapture": func() error { return newStream(t, d).BeginCapture() },
		"Map": func() error {
			p, err := d.NewPhysical(1)
			require.NoError(t, err)
			defer p.Release()
			_, err = p.Map()
			return err
		},
	}
	for _, c := range []struct{ maker, call string }{
		{"Alloc", "cuMemAlloc"}, {"Alloc", "cuMemsetD8Async"}, {"Alloc", "cuEventRecord"}, {"AllocPinned", "cuMemHostAlloc"},
		{"AllocPinned", "cuMemHostGetDevicePointer"}, {"Stream", "cuStreamCreateWithPriority"}, {"Stream", "cuCtxPushCurrent"},
		{"NewPool", "cuMemPoolCreate"}, {"NewPool", "cuMemPoolSetAttribute"}, {"NewPhysical", "cuMemGetAllocationGranularity"},
		{"NewPhysical", "cuMemCreate"}, {"Map", "cuMemAddressReserve"}, {"Map", "cuMemMap"}, {"Map", "cuMemSetAccess"},
		{"NewEvent", "cuEventCreate"}, {"LoadModule", "cuModuleLoadDataEx"}, {"Open", "cuDevicePrimaryCtxRetain"},
		{"Open", "cuStreamCreateWithPriority"}, {"EnablePeer", "cuCtxEnablePeerAccess"}, {"BeginCapture", "cuStreamBeginCapture"},
	} {
		before := m.fake.number(t, "fake_spans")
		m.fake.change(c.call, int(NotPermitted))
		err := makers[c.maker]()
		require.ErrorIs(t, err, &Error{Code: NotPermitted, Call: c.call}, "%s with %s", c.maker, c.call)
		require.ErrorIs(t, err, goccl.ErrUnsupported)
		require.Regexp(t, "cuda:[01]: ", err.Error(), "the device is named")
		require.Equal(t, before, m.fake.number(t, "fake_spans"), "%s with %s left memory", c.maker, c.call)
		require.Zero(t, m.fake.number(t, "fake_depth"))
	}
	// The test ends with Close, which would name what was left.
}

func TestFakeCalls(t *testing.T) {
	m := newFake(t)
	d, err := m.Open(1)
	require.NoError(t, err)
	s, err := d.Stream(-2)
	require.NoError(t, err)
	mem, err := d.AllocMemory(1000)
	require.NoError(t, err)
	require.NoError(t, mem.Free())
	require.NoError(t, s.Close())
	require.NoError(t, d.Close())
	require.Equal(t, []string{"cuDevicePrimaryCtxRetain 1", "cuStreamCreateWithPriority 1 0", "cuStreamCreateWithPriority 1 -2",
		"cuMemAlloc 1000", "cuMemsetD8Async 0 1000", "cuEventCreate 2", "cuEventRecord", "cuEventQuery", "cuMemFree", "cuStreamDestroy -2",
		"cuEventDestroy", "cuStreamDestroy 0", "cuDevicePrimaryCtxRelease 1"}, m.fake.calls())
}
