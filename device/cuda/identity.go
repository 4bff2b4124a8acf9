package cuda

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/goccl/goccl"
)

// UUID names one GPU, or one MIG instance, in the world.
type UUID [16]byte

// String returns the form of nvidia-smi: GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx.
func (u UUID) String() string {
	return fmt.Sprintf("GPU-%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// ParseUUID reads what String writes. The prefix may be left out, or be MIG.
func ParseUUID(s string) (UUID, error) {
	digits := strings.TrimPrefix(strings.TrimPrefix(s, "GPU-"), "MIG-")
	b, err := hex.DecodeString(strings.ReplaceAll(digits, "-", ""))
	if err != nil || len(b) != len(UUID{}) {
		return UUID{}, fmt.Errorf("%w: %q is no UUID of a GPU, such as GPU-1b2c3d4e-0011-2233-4455-66778899aabb", goccl.ErrInvalid, s)
	}
	return UUID(b), nil
}

// BusID is a place on the PCI bus as Linux writes it: 0000:3b:00.0. It is a
// folder below /sys/bus/pci/devices.
type BusID string

// ParseBusID reads a place on the PCI bus as the driver, NVML or lspci write it:
// with a domain of four or eight digits or none, in either case.
func ParseBusID(s string) (BusID, error) {
	bad := fmt.Errorf("%w: %q is no place on the PCI bus, such as 0000:3b:00.0", goccl.ErrInvalid, s)
	f := strings.Split(s, ":")
	if len(f) == 2 {
		f = append([]string{"0"}, f...)
	}
	if len(f) != 3 {
		return "", bad
	}
	slot, function, ok := strings.Cut(f[2], ".")
	if !ok {
		return "", bad
	}
	var n [4]uint64
	for i, part := range []string{f[0], f[1], slot, function} {
		var err error
		if n[i], err = strconv.ParseUint(part, 16, []int{32, 8, 5, 3}[i]); err != nil {
			return "", bad
		}
	}
	return BusID(fmt.Sprintf("%04x:%02x:%02x.%x", n[0], n[1], n[2], n[3])), nil
}
