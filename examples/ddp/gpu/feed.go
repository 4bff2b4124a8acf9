package gpu

import (
	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/device/cuda"
	"github.com/goccl/goccl/examples/ddp/train"
)

// feed brings the samples of a batch to the device.
type feed struct {
	host   []float32 // pinned: Batch × Inputs
	marks  []uint8   // pinned: labels
	from   [2]uintptr
	images device.Buffer
	labels uintptr
	read   *cuda.Event // the device has copied host and marks
}

func (f *feed) build(e *Engine) (err error) {
	n := e.batch * train.Inputs
	f.images, f.labels = e.memory.floats(n), e.memory.bytes(e.batch)
	host, marks := e.memory.pinned(4*n), e.memory.pinned(e.batch)
	if e.memory.err != nil {
		return e.memory.err
	}
	f.from = [2]uintptr{host.Addr(), marks.Addr()}
	f.host = device.View[float32](device.FromPointer(host.Addr(), n, goccl.F32, device.ID{}, host))
	f.marks = marks.Host()
	f.read, err = e.gpu.dev.NewEvent()
	return err
}

// queue copies the samples to the device.
func (f *feed) queue(sec cuda.Section) error {
	if err := sec.Copy(f.images.Addr, f.from[0], f.images.Bytes()); err != nil {
		return err
	}
	if err := sec.Copy(f.labels, f.from[1], len(f.marks)); err != nil {
		return err
	}
	return sec.RecordTo(f.read)
}
