package cuda

import (
	"fmt"
	"unsafe"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/internal/dl"
)

// Numbers of the driver's device attributes.
const (
	attrMultiprocessors     = 16
	attrL2Bytes             = 38
	attrCopyEngines         = 40
	attrUnifiedAddressing   = 41
	attrMajor               = 75
	attrMinor               = 76
	attrSharedPerBlockOptin = 97
	attrVMM                 = 102
	attrVMMFileDescriptor   = 103
	attrRDMAWithVMM         = 110
	attrMemoryPools         = 115
	attrWideStreamMemOps    = 122
	attrHostNUMA            = 134
	longestName             = 256
	longestBusID            = 32
)

// Info describes one GPU that this process sees.
type Info struct {
	Index       int // in the order of CUDA_VISIBLE_DEVICES
	Name        string
	UUID        UUID
	BusID       BusID
	ComputeCap  int // 90 for sm_90
	Bytes       int // of memory, all of it
	SMs         int
	L2Bytes     int
	SharedBytes int // most shared memory that one block can ask for
	CopyEngines int
	HostNUMA    int // the NUMA node nearest to it, -1 where unknown

	ordinal int32
	vmm     bool // memory can be mapped through file descriptors
	rdmaVMM bool
	pools   bool
	memOps  bool
	unified bool
}

// Devices describes all GPUs that this process sees, in order of Index. It makes
// no context.
func (d *Driver) Devices() ([]Info, error) {
	var n int32
	if err := d.do(cuDeviceGetCount, uintptr(unsafe.Pointer(&n))); err != nil {
		return nil, fmt.Errorf("cuda: %w", err)
	}
	all := make([]Info, n)
	for i := range all {
		info, err := d.describe(i)
		if err != nil {
			return nil, fmt.Errorf("cuda:%d: %w", i, err)
		}
		all[i] = info
	}
	return all, nil
}

// ByUUID returns the GPU of that name. The error wraps goccl.ErrInvalid and lists
// those that there are.
func (d *Driver) ByUUID(u UUID) (Info, error) {
	return d.which(u.String(), func(i Info) bool { return i.UUID == u }, func(i Info) string { return i.UUID.String() })
}

// ByBusID returns the GPU at that place. The error wraps goccl.ErrInvalid and
// lists those that there are.
func (d *Driver) ByBusID(b BusID) (Info, error) {
	return d.which(string(b), func(i Info) bool { return i.BusID == b }, func(i Info) string { return string(i.BusID) })
}

func (d *Driver) which(name string, is func(Info) bool, says func(Info) string) (Info, error) {
	all, err := d.Devices()
	if err != nil {
		return Info{}, err
	}
	var others []string
	for _, i := range all {
		if is(i) {
			return i, nil
		}
		others = append(others, says(i))
	}
	return Info{}, fmt.Errorf("cuda: %w: no GPU %s is visible to this process, it sees %q", goccl.ErrInvalid, name, others)
}

// describe asks for all that is in Info.
func (d *Driver) describe(index int) (Info, error) {
	info := Info{Index: index}
	if err := d.do(cuDeviceGet, uintptr(unsafe.Pointer(&info.ordinal)), uintptr(index)); err != nil {
		return info, err
	}
	name, bus := make([]byte, longestName), make([]byte, longestBusID)
	dev := uintptr(info.ordinal)
	if err := d.do(cuDeviceGetName, uintptr(unsafe.Pointer(&name[0])), uintptr(len(name)), dev); err != nil {
		return info, err
	}
	if err := d.do(cuDeviceGetUUID, uintptr(unsafe.Pointer(&info.UUID)), dev); err != nil {
		return info, err
	}
	if err := d.do(cuDeviceGetPCIBusID, uintptr(unsafe.Pointer(&bus[0])), uintptr(len(bus)), dev); err != nil {
		return info, err
	}
	var total uint64
	if err := d.do(cuDeviceTotalMem, uintptr(unsafe.Pointer(&total)), dev); err != nil {
		return info, err
	}
	info.Name, info.Bytes = dl.Text(name), int(total)
	var err error
	if info.BusID, err = ParseBusID(dl.Text(bus)); err != nil {
		return info, err
	}
	return info, d.attributes(&info)
}

// attributes fills what the driver says in whole numbers.
func (d *Driver) attributes(info *Info) error {
	var major, minor, vmm, fd int
	flag := map[int]*bool{attrRDMAWithVMM: &info.rdmaVMM, attrMemoryPools: &info.pools,
		attrWideStreamMemOps: &info.memOps, attrUnifiedAddressing: &info.unified}
	number := map[int]*int{attrMajor: &major, attrMinor: &minor, attrVMM: &vmm, attrVMMFileDescriptor: &fd,
		attrMultiprocessors: &info.SMs, attrL2Bytes: &info.L2Bytes, attrSharedPerBlockOptin: &info.SharedBytes,
		attrCopyEngines: &info.CopyEngines}
	for id, to := range number {
		v, err := d.attribute(info.ordinal, id)
		if err != nil {
			return err
		}
		*to = v
	}
	for id, to := range flag {
		v, err := d.attribute(info.ordinal, id)
		if err != nil {
			return err
		}
		*to = v != 0
	}
	info.ComputeCap, info.vmm = major*10+minor, vmm != 0 && fd != 0
	info.HostNUMA = -1
	if v, err := d.attribute(info.ordinal, attrHostNUMA); err == nil { // drivers before 12.2 do not know the question
		info.HostNUMA = v
	}
	return nil
}

func (d *Driver) attribute(ordinal int32, id int) (int, error) {
	var v int32
	err := d.do(cuDeviceGetAttribute, uintptr(unsafe.Pointer(&v)), uintptr(id), uintptr(ordinal))
	return int(v), err
}
