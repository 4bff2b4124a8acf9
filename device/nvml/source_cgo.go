//go:build cgo && linux

package nvml

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/goccl/goccl"
)

// binding asks the library through go-nvml. A call of a function that is not in
// the library that was loaded ends the process, without a panic. So nothing is
// called before Init has succeeded, and what came after the first versions is
// looked up before.
type binding struct {
	lib nvml.Interface
	has func(symbol string) bool
	all []nvml.Device
}

var _ source = (*binding)(nil)

// always are the functions without which there is no use in the rest. They are as
// old as the drivers that CUDA 12 needs.
var always = []string{"nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetUUID", "nvmlDeviceGetPciInfo_v3",
	"nvmlDeviceGetName", "nvmlDeviceGetMemoryInfo", "nvmlErrorString"}

func newSource() (source, error) {
	lib := nvml.New()
	if ret := lib.Init(); ret == nvml.ERROR_LIBRARY_NOT_FOUND {
		return nil, fmt.Errorf("%w: there is no libnvidia-ml.so.1, or it does not load", goccl.ErrUnsupported)
	} else if ret != nvml.SUCCESS {
		return nil, fmt.Errorf("%w: it does not start: %w", goccl.ErrUnsupported, ret)
	}
	b, err := bind(lib, func(symbol string) bool { return lib.Extensions().LookupSymbol(symbol) == nil })
	if err != nil {
		_ = lib.Shutdown() // the first error says more
		return nil, err
	}
	return b, nil
}

// bind finds the devices of a library that has been initialised.
func bind(lib nvml.Interface, has func(symbol string) bool) (*binding, error) {
	b := &binding{lib: lib, has: has}
	for _, symbol := range always {
		if !has(symbol) {
			return nil, fmt.Errorf("%w: it is too old: it lacks %s", goccl.ErrUnsupported, symbol)
		}
	}
	n, ret := lib.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return nil, ret
	}
	for i := range n {
		d, ret := lib.DeviceGetHandleByIndex(i)
		if ret != nvml.SUCCESS {
			return nil, fmt.Errorf("GPU %d: %w", i, ret)
		}
		b.all = append(b.all, d)
	}
	return b, nil
}

func (b *binding) close() error {
	if ret := b.lib.Shutdown(); ret != nvml.SUCCESS {
		return ret
	}
	return nil
}

func (b *binding) devices() ([]Device, error) {
	var listed []Device
	for i, d := range b.all {
		uuid, ret := d.GetUUID()
		if ret != nvml.SUCCESS {
			return nil, fmt.Errorf("name of GPU %d: %w", i, ret)
		}
		place, ret := d.GetPciInfo()
		if ret != nvml.SUCCESS {
			return nil, fmt.Errorf("place of GPU %d: %w", i, ret)
		}
		name, ret := d.GetName()
		if ret != nvml.SUCCESS {
			return nil, fmt.Errorf("name of GPU %d: %w", i, ret)
		}
		listed = append(listed, Device{Index: i, UUID: uuid, BusID: busID(place), Name: name})
	}
	return listed, nil
}

func busID(p nvml.PciInfo) string { return fmt.Sprintf("%04x:%02x:%02x.0", p.Domain, p.Bus, p.Device) }

func (b *binding) memory(device int) (total, used int, err error) {
	m, ret := b.all[device].GetMemoryInfo()
	if ret != nvml.SUCCESS {
		return 0, 0, ret
	}
	return int(m.Total), int(m.Used), nil
}

// links asks link after link until the device says that it has no more.
func (b *binding) links(device int) ([]Link, error) {
	if !b.has("nvmlDeviceGetNvLinkState") {
		return nil, nil
	}
	d := b.all[device]
	var links []Link
	for i := range nvml.NVLINK_MAX_LINKS {
		state, ret := d.GetNvLinkState(i)
		if ret == nvml.ERROR_NOT_SUPPORTED || ret == nvml.ERROR_INVALID_ARGUMENT {
			break
		}
		if ret != nvml.SUCCESS {
			return nil, fmt.Errorf("NVLink %d: %w", i, ret)
		}
		if state == nvml.FEATURE_ENABLED {
			links = append(links, b.link(d, i))
		}
	}
	return links, nil
}

// link asks what is behind a link that is up. What the library does not know stays
// unknown.
func (b *binding) link(d nvml.Device, i int) Link {
	l := Link{Number: i}
	if b.has("nvmlDeviceGetNvLinkVersion") {
		if v, ret := d.GetNvLinkVersion(i); ret == nvml.SUCCESS {
			l.Version = int(v)
		}
	}
	if b.has("nvmlDeviceGetNvLinkRemotePciInfo_v2") {
		if p, ret := d.GetNvLinkRemotePciInfo(i); ret == nvml.SUCCESS {
			l.BusID = busID(p)
		}
	}
	if b.has("nvmlDeviceGetNvLinkRemoteDeviceType") {
		if kind, ret := d.GetNvLinkRemoteDeviceType(i); ret == nvml.SUCCESS {
			l.End = map[nvml.IntNvLinkDeviceType]End{nvml.NVLINK_DEVICE_TYPE_GPU: GPU, nvml.NVLINK_DEVICE_TYPE_SWITCH: Switch,
				nvml.NVLINK_DEVICE_TYPE_IBMNPU: Other}[kind]
		}
	}
	return l
}

// access asks the driver's verdict on a pair. A question that the library does not
// know is answered with no.
func (b *binding) access(from, to int) (read, write, atomics bool, err error) {
	if from == to {
		return true, true, true, nil
	}
	if !b.has("nvmlDeviceGetP2PStatus") {
		return false, false, false, nil
	}
	var ok [3]bool
	for i, what := range []nvml.GpuP2PCapsIndex{nvml.P2P_CAPS_INDEX_READ, nvml.P2P_CAPS_INDEX_WRITE, nvml.P2P_CAPS_INDEX_ATOMICS} {
		status, ret := b.all[from].GetP2PStatus(b.all[to], what)
		if ret != nvml.SUCCESS && ret != nvml.ERROR_NOT_SUPPORTED {
			return false, false, false, ret
		}
		ok[i] = ret == nvml.SUCCESS && status == nvml.P2P_STATUS_OK
	}
	return ok[0], ok[1], ok[2], nil
}
