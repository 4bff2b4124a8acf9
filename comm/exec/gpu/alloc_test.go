//go:build !race

package gpu_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/exec"
	"github.com/goccl/goccl/comm/exec/gpu"
	"github.com/goccl/goccl/comm/exec/gpu/gputest"
	"github.com/goccl/goccl/comm/plan/algo"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/device/kernels/abi"
)

// nothing is a device on which launches do nothing.
type nothing struct{ args []byte }

func (n *nothing) Alloc(bytes int) (device.Memory, error)     { return nothingOf(bytes), nil }
func (n *nothing) Export(device.Memory) ([]byte, error)       { return nil, nil }
func (n *nothing) Import([]byte) (device.Memory, error)       { return nothingOf(1 << 40), nil }
func (n *nothing) Write(uintptr, []byte) error                { return nil }
func (n *nothing) Status() (gpu.Status, error)                { return nothingOf(8), nil }
func (n *nothing) Warp() int                                  { return 32 }
func (n *nothing) Kernel(string) (gpu.Kernel, error)          { return n, nil }
func (n *nothing) Prepare(_, _, _, _ int) (gpu.Launch, error) { return n, nil }
func (n *nothing) Args() []byte                               { return n.args }
func (n *nothing) Queue(device.Stream) error                  { return nil }

type nothingOf int

func (m nothingOf) Addr() uintptr { return 1 << 20 }
func (m nothingOf) Bytes() int    { return int(m) }
func (m nothingOf) Abort()        {}
func (m nothingOf) Fault() uint32 { return 0 }
func (m nothingOf) Free() error   { return nil }

func TestLaunchDoesNotAllocate(t *testing.T) {
	d := &nothing{args: make([]byte, len(abi.Bytes(&abi.InterpArgs{})))}
	l := gpu.DefaultLayout(2, 132)
	r, err := gpu.New(gpu.Config{Layout: l, Device: d})
	require.NoError(t, err)
	require.NoError(t, r.Map([][]byte{nil, nil}))
	p, err := algo.Build(gputest.KeyOf(l, goccl.AllReduce, goccl.Ring, goccl.Simple, goccl.F32), 0, gputest.Mapped(t, 2))
	require.NoError(t, err)
	b, err := r.Bind(p)
	require.NoError(t, err)
	unit := int64(0)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		unit = (unit + 99996) % (1 << 20)
		a := exec.Args{In: 4096, Out: 8192, Unit: unit}
		if err := b.Launch(&a, nil); err != nil {
			t.Error(err)
		}
	}))
	require.NoError(t, r.Close())
}
