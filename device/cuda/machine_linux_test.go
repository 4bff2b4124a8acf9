package cuda

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/dl"
	"github.com/goccl/goccl/internal/leak"
	"github.com/goccl/goccl/internal/testproc"
)

//go:embed testdata/fakecuda.c
var fakeSource []byte

//go:embed testdata/kernels.ptx
var kernels []byte

func TestMain(m *testing.M) {
	testproc.Enter(map[string]testproc.Rank{"share": shareRank})
	code := 0
	if _, err := Load(); err == nil {
		code = m.Run() // a driver keeps files open until the process ends
	} else {
		code = leak.Check(m)
	}
	if built, err := build(); err == nil {
		_ = os.RemoveAll(filepath.Dir(built)) // the system cleans its folder of temporary files as well
	}
	os.Exit(code)
}

// machine is where a test runs: on GPUs, or on the model of the driver.
type machine struct {
	*Driver
	fake *fake // nil on GPUs
}

// fake is the model seen from a test.
type fake struct {
	lib  *dl.Library
	text dl.Func
	set  dl.Func
}

// build compiles the model and returns its path, once.
var build = sync.OnceValues(func() (string, error) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "goccl-fakecuda-")
	if err != nil {
		return "", err
	}
	source, lib := filepath.Join(dir, "fakecuda.c"), filepath.Join(dir, "libfakecuda.so")
	if err := os.WriteFile(source, fakeSource, 0o600); err != nil {
		return "", err
	}
	if out, err := exec.Command(gcc, "-shared", "-fPIC", "-O1", "-o", lib, source, "-lpthread").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return lib, nil
})

// newFake returns the model with two devices and an empty log.
func newFake(t testing.TB) machine {
	t.Helper()
	f := modelOf(t)
	for what, v := range map[string]int{"version": 12080, "devices": 2, "peers": 1, "vmm": 1} {
		f.change(what, v)
	}
	drv, err := open(f.lib.Name())
	require.NoError(t, err)
	f.calls()
	return machine{drv, f}
}

// modelOf loads the model and does not start it.
func modelOf(t testing.TB) *fake {
	t.Helper()
	path, err := build()
	if err != nil {
		require.ErrorIs(t, err, exec.ErrNotFound, "the model does not compile")
		t.Skip("no C compiler to build the model of the driver")
	}
	f := &fake{}
	f.lib, err = dl.Open(path)
	require.NoError(t, err)
	require.NoError(t, f.lib.Resolve([]dl.Symbol{{Name: "fake_log", Into: &f.text}, {Name: "fake_set", Into: &f.set}}))
	return f
}

// change changes the machine, or plans the failure of the next call of a name.
func (f *fake) change(what string, v int) {
	name := dl.CString(what)
	f.set.Call(uintptr(unsafe.Pointer(&name[0])), uintptr(v))
}

// calls returns what was called since the last time, without what every call
// does to enter a context.
func (f *fake) calls() []string {
	var lines []string
	for line := range strings.Lines(dl.GoString(f.text.Call())) {
		if !strings.HasPrefix(line, "cuCtxP") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

func (f *fake) number(t testing.TB, name string) int {
	t.Helper()
	fn, err := f.lib.Lookup(name)
	require.NoError(t, err)
	return int(dl.Int32(fn.Call()))
}

// newGPUs returns the driver, and skips where there are too few GPUs, unless
// GOCCL_REQUIRE has cuda.
func newGPUs(t testing.TB, devices int) machine {
	t.Helper()
	reason := ""
	drv, err := Load()
	if err != nil {
		reason = err.Error()
	} else if all, err := drv.Devices(); err != nil {
		reason = err.Error()
	} else if len(all) < devices {
		t.Skipf("%d GPUs are needed, %d are visible", devices, len(all))
	}
	if reason != "" {
		if slices.Contains(strings.Split(os.Getenv("GOCCL_REQUIRE"), ","), "cuda") {
			t.Fatal("GOCCL_REQUIRE has cuda: " + reason)
		}
		t.Skip(reason)
	}
	return machine{drv, nil}
}

// open opens a device for the length of a test, at whose end nothing is left.
func (m machine) open(t testing.TB, index int) *Device {
	t.Helper()
	d, err := m.Open(index)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// behaviours are tests that hold on every machine with that many devices.
var behaviours = []struct {
	name    string
	devices int
	run     func(t *testing.T, m machine)
}{
	{"contract", 1, testContract},
	{"devices are found by name and place", 1, testIdentity},
	{"host memory", 1, testHostMemory},
	{"write and read", 1, testWriteRead},
	{"fill", 1, testFill},
	{"too much memory", 1, testOutOfMemory},
	{"pool", 1, testPool},
	{"physical memory", 1, testPhysical},
	{"pointers", 1, testPointers},
	{"kernels", 1, testKernels},
	{"launch attributes", 1, testLaunchAttributes},
	{"launches are checked", 1, testLaunchChecks},
	{"shared memory of a block", 1, testDynamicShared},
	{"modules that do not load", 1, testBadModules},
	{"graph", 1, testGraph},
	{"a capture that fails", 1, testFailedCapture},
	{"two streams in one graph", 1, testForkedCapture},
	{"captures by others go on", 1, testForeignCapture},
	{"words", 1, testWords},
	{"batches of words", 1, testBatch},
	{"timers", 1, testTimers},
	{"foreign streams", 1, testForeignStreams},
	{"foreign events", 1, testForeignEvents},
	{"foreign contexts", 1, testForeignContext},
	{"threads are left as they were", 1, testThreads},
	{"calls without a context", 1, testWithoutContext},
	{"hot calls do not allocate", 1, testNoAllocation},
	{"peers", 2, testPeers},
	{"mapped for a peer", 2, testPeerMapping},
	{"streams wait across devices", 2, testCrossDevice},
}

func TestFake(t *testing.T) {
	for _, b := range behaviours {
		t.Run(b.name, func(t *testing.T) {
			m := newFake(t)
			before := m.fake.number(t, "fake_spans")
			t.Cleanup(func() { // after the test's own
				require.Equal(t, before, m.fake.number(t, "fake_spans"), "memory was left")
			})
			b.run(t, m)
		})
	}
}

func TestGPU(t *testing.T) {
	for _, b := range behaviours {
		t.Run(b.name, func(t *testing.T) { b.run(t, newGPUs(t, b.devices)) })
	}
}
