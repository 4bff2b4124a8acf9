package cuda_test

import (
	"context"
	"errors"
	"log/slog"

	"github.com/goccl/goccl/device/cuda"
)

// scale halves n floats at addr on a stream that a framework has made, and returns
// when that is done. image is a cubin, or PTX, with a kernel
//
//	extern "C" __global__ void scale(float *x, float by, unsigned n)
func scale(ctx context.Context, dev *cuda.Device, theirs, addr uintptr, n int, image []byte) error {
	st, err := dev.WrapStream(theirs)
	if err != nil {
		return err
	}
	mod, err := dev.LoadModule(image)
	if err != nil {
		return err
	}
	kernel, err := mod.Kernel("scale")
	if err != nil {
		return err
	}
	launch, err := kernel.NewLaunch(cuda.Shape{Grid: [3]int{(n + 255) / 256}, Block: [3]int{256}}, 16)
	if err != nil {
		return err
	}
	launch.Put64(0, uint64(addr))
	launch.Put32(8, 0x3f000000) // 0.5
	launch.Put32(12, uint32(n))

	sec, err := st.Enter()
	if err != nil {
		return err
	}
	err = sec.Launch(launch)
	sec.Leave()
	return errors.Join(err, st.Sync(ctx), mod.Unload(), st.Close())
}

// The stream and the memory come from a framework; a device is found by its place
// on the bus, which means the same to everybody.
func Example() {
	var (
		stream, addr uintptr // of the framework
		image        []byte  // compiled beforehand
	)
	drv, err := cuda.Load()
	if err != nil {
		slog.Warn("no GPU is used", "reason", err) // no driver, an old one, or no GPU: it says which
		return
	}
	info, err := drv.ByBusID("0000:3b:00.0")
	if err != nil {
		slog.Warn("no GPU is used", "reason", err) // it lists those that there are
		return
	}
	dev, err := drv.Open(info.Index)
	if err != nil {
		slog.Warn("no GPU is used", "reason", err)
		return
	}
	defer dev.Close()
	if err := scale(context.Background(), dev, stream, addr, 1000, image); err != nil {
		slog.Error("not scaled", "reason", err)
	}
}
