package kernels

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/device/cuda"
	"github.com/goccl/goccl/device/kernels/abi"
)

// gpu runs kernels on a GPU, from the images for one compute capability.
type gpu struct {
	dev     *cuda.Device
	stream  *cuda.Stream
	cap     int
	kernels map[Launch]*cuda.Kernel // by module and name alone
	modules map[string]*cuda.Module
}

var _ machine = (*gpu)(nil)

// newGPU opens the first GPU and loads modules as for capability, 0 for its own. It
// skips where there is none, unless GOCCL_REQUIRE has cuda.
func newGPU(t *testing.T, capability int) *gpu {
	t.Helper()
	drv, err := cuda.Load()
	var dev *cuda.Device
	if err == nil {
		dev, err = drv.Open(0)
	}
	if err != nil {
		require.False(t, slices.Contains(strings.Split(os.Getenv("GOCCL_REQUIRE"), ","), "cuda"), "GOCCL_REQUIRE has cuda: %v", err)
		t.Skip(err)
	}
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	if capability == 0 {
		capability = dev.Info().ComputeCap
	}
	stream, err := dev.Stream(0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, stream.Close()) })
	g := &gpu{dev: dev, stream: stream, cap: capability, kernels: map[Launch]*cuda.Kernel{}, modules: map[string]*cuda.Module{}}
	t.Cleanup(func() {
		for _, m := range g.modules {
			require.NoError(t, m.Unload())
		}
	})
	return g
}

// patience bounds every wait for the GPU.
func patience(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// room returns memory until the test ends.
func (g *gpu) room(t *testing.T, bytes int) uintptr {
	t.Helper()
	m, err := g.dev.AllocMemory(bytes)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Free()) })
	return m.Addr()
}

func (g *gpu) alloc(t *testing.T, content []byte) uint64 {
	t.Helper()
	addr := g.room(t, len(content))
	require.NoError(t, g.dev.Write(patience(t), addr, content))
	return uint64(addr)
}

func (g *gpu) read(t *testing.T, addr uint64, into []byte) {
	t.Helper()
	require.NoError(t, g.stream.Sync(patience(t)))
	require.NoError(t, g.dev.Read(patience(t), into, uintptr(addr)))
}

// kernel loads what l launches, once.
func (g *gpu) kernel(t *testing.T, l Launch) *cuda.Kernel {
	t.Helper()
	key := Launch{Module: l.Module, Kernel: l.Kernel}
	if g.kernels[key] == nil {
		if g.modules[l.Module] == nil {
			image, err := Load(l.Module, g.cap)
			require.NoError(t, err)
			t.Logf("%s: %s, %d bytes", l.Module, image.Target, len(image.Code))
			g.modules[l.Module], err = g.dev.LoadModule(image.Code)
			require.NoError(t, err)
		}
		k, err := g.modules[l.Module].Kernel(l.Kernel)
		require.NoError(t, err)
		g.kernels[key] = k
	}
	return g.kernels[key]
}

func (g *gpu) launch(t *testing.T, l Launch, args []byte) {
	t.Helper()
	shape := cuda.Shape{Grid: [3]int{int(l.Blocks)}, Block: [3]int{int(l.Threads)}}
	launch, err := g.kernel(t, l).NewLaunch(shape, len(args))
	require.NoError(t, err)
	copy(launch.Args(), args)
	section, err := g.stream.Enter()
	require.NoError(t, err)
	defer section.Leave()
	require.NoError(t, section.Launch(launch))
}

// TestGPUCubin and TestGPUPTX run the cases of the emulator on a GPU: from the image
// for it, and as a GPU for which there is none would, through the driver's compiler.
func TestGPUCubin(t *testing.T) {
	g := newGPU(t, 0)
	if image, err := Load(mlp, g.cap); err != nil || image.PTX {
		t.Skipf("there is no cubin for sm_%d", g.cap)
	}
	onMachine(t, g)
}

func TestGPUPTX(t *testing.T) { onMachine(t, newGPU(t, 70)) }

// TestGPUKernelsAreAsInTheLock compares what the driver says of each kernel with what
// the compiler reported, for the image of this GPU and for what the driver makes of
// PTX: nothing spills.
func TestGPUKernelsAreAsInTheLock(t *testing.T) {
	for _, capability := range []int{0, 70} {
		g := newGPU(t, capability)
		for _, m := range readLock(t).Modules {
			image, err := Load(m.Name, g.cap)
			require.NoError(t, err)
			for _, k := range m.Kernels {
				if k.Target != image.Target && !(image.PTX && k.Target == "sm_70") {
					continue
				}
				info := g.kernel(t, Launch{Module: m.Name, Kernel: k.Name}).Info()
				require.Zero(t, info.LocalBytes, "%s of %s", k.Name, image.Target)
				require.Equal(t, k.Shared, info.StaticShared, "%s of %s", k.Name, image.Target)
				if !image.PTX {
					require.Equal(t, k.Registers, info.Registers, "%s of %s", k.Name, image.Target)
				}
			}
		}
	}
}

// TestGPULarge fills and checks more elements than a grid has threads, and more than
// 32 bits of bytes where there is the memory.
func TestGPULarge(t *testing.T) {
	g := newGPU(t, 0)
	n := 1<<30 + 12345
	if free, _, err := g.dev.MemoryInfo(); err != nil || free < 3*4*n {
		n = 1<<24 + 12345
	}
	x := uint64(g.room(t, 4*n))
	r := put(t, machine(g), []abi.Mismatches{NoMismatches()})
	fill := abi.FillArgs{X: x, N: uint64(n), Rank: 3}
	start(t, g, FillPattern(&fill), nil, &fill)
	check := abi.CheckArgs{X: x, Result: r.addr, N: uint64(n), Rank: 3, Ranks: 1}
	l, err := CheckPattern(&check)
	start(t, g, l, err, &check)
	require.Equal(t, NoMismatches(), mismatches(t, r))

	// One element at the far end is doubled, and found.
	scale := abi.ScaleArgs{X: x + 4*uint64(n-1), N: 1, Factor: 2}
	start(t, g, Scale(&scale), nil, &scale)
	fill.N, fill.X, fill.Rank, fill.First = 1, x+4*uint64(n-2), 4, uint64(n-2)
	start(t, g, FillPattern(&fill), nil, &fill)
	start(t, g, l, err, &check)
	want := abi.Mismatches{Count: 2, First: uint64(n - 2)}
	if Pattern(3, uint64(n-1)) == 0 {
		want.Count = 1 // twice nothing
	}
	require.Equal(t, want, mismatches(t, r))
}

// TestGPULargeMatmul multiplies as large as a training step does, against the CPU.
func TestGPULargeMatmul(t *testing.T) {
	g := machine(newGPU(t, 0))
	const m, n, k = 256, 544, 320
	a, b := normal(1, m*k), normal(2, k*n)
	c := put(t, g, make([]float32, m*n))
	args := abi.MatmulArgs{A: put(t, g, a).addr, B: put(t, g, b).addr, C: c.addr, M: m, N: n, K: k, Alpha: 1}
	l, err := Matmul(&args)
	start(t, g, l, err, &args)
	require.Equal(t, bits(product(a, b, m, n, k, false, false, 1)), bits(c.get(t)))
}
