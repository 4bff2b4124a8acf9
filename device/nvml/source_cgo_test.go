//go:build cgo && linux

package nvml

import (
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
)

// mocked is a machine of two GPUs behind go-nvml's own interface. lacks are
// functions that its library does not have; a call of one of them fails the test.
func mocked(t *testing.T, lacks ...string) (*binding, error) {
	t.Helper()
	has := func(symbol string) bool {
		for _, l := range lacks {
			if l == symbol {
				return false
			}
		}
		return true
	}
	guard := func(symbol string) {
		if !has(symbol) {
			t.Errorf("%s was called and is not there", symbol)
		}
	}
	gpu := func(i int) *mock.Device {
		return &mock.Device{
			GetUUIDFunc: func() (string, nvml.Return) { return []string{"GPU-a", "GPU-b"}[i], nvml.SUCCESS },
			GetNameFunc: func() (string, nvml.Return) { return "mock", nvml.SUCCESS },
			GetPciInfoFunc: func() (nvml.PciInfo, nvml.Return) {
				return nvml.PciInfo{Domain: 1, Bus: 0x3a + uint32(i)}, nvml.SUCCESS
			},
			GetMemoryInfoFunc: func() (nvml.Memory, nvml.Return) { return nvml.Memory{Total: 100, Used: 7}, nvml.SUCCESS },
			GetNvLinkStateFunc: func(l int) (nvml.EnableState, nvml.Return) {
				guard("nvmlDeviceGetNvLinkState")
				switch l {
				case 0, 2:
					return nvml.FEATURE_ENABLED, nvml.SUCCESS
				case 1:
					return nvml.FEATURE_DISABLED, nvml.SUCCESS
				}
				return 0, nvml.ERROR_INVALID_ARGUMENT
			},
			GetNvLinkVersionFunc: func(int) (uint32, nvml.Return) { guard("nvmlDeviceGetNvLinkVersion"); return 4, nvml.SUCCESS },
			GetNvLinkRemotePciInfoFunc: func(int) (nvml.PciInfo, nvml.Return) {
				guard("nvmlDeviceGetNvLinkRemotePciInfo_v2")
				return nvml.PciInfo{Domain: 1, Bus: 0x3b - uint32(i)}, nvml.SUCCESS
			},
			GetNvLinkRemoteDeviceTypeFunc: func(l int) (nvml.IntNvLinkDeviceType, nvml.Return) {
				guard("nvmlDeviceGetNvLinkRemoteDeviceType")
				if l == 2 {
					return 0, nvml.ERROR_NOT_SUPPORTED
				}
				return nvml.NVLINK_DEVICE_TYPE_GPU, nvml.SUCCESS
			},
			GetP2PStatusFunc: func(_ nvml.Device, what nvml.GpuP2PCapsIndex) (nvml.GpuP2PStatus, nvml.Return) {
				guard("nvmlDeviceGetP2PStatus")
				if what == nvml.P2P_CAPS_INDEX_ATOMICS {
					return 0, nvml.ERROR_NOT_SUPPORTED
				}
				return nvml.P2P_STATUS_OK, nvml.SUCCESS
			},
		}
	}
	all := []nvml.Device{gpu(0), gpu(1)}
	return bind(&mock.Interface{
		DeviceGetCountFunc:         func() (int, nvml.Return) { return len(all), nvml.SUCCESS },
		DeviceGetHandleByIndexFunc: func(i int) (nvml.Device, nvml.Return) { return all[i], nvml.SUCCESS },
		ShutdownFunc:               func() nvml.Return { return nvml.SUCCESS },
	}, has)
}

func TestBinding(t *testing.T) {
	b, err := mocked(t)
	require.NoError(t, err)
	l, err := newLibrary(b)
	require.NoError(t, err)
	defer l.Close()
	all := l.Devices()
	require.Equal(t, []Device{{0, "GPU-a", "0001:3a:00.0", "mock"}, {1, "GPU-b", "0001:3b:00.0", "mock"}}, all)
	links, err := l.Links(all[0])
	require.NoError(t, err)
	require.Equal(t, []Link{{0, 4, GPU, "0001:3b:00.0"}, {2, 4, UnknownEnd, "0001:3b:00.0"}}, links)
	p, err := l.Path(all[0], all[1])
	require.NoError(t, err)
	require.Equal(t, Path{Links: 2, Read: true, Write: true}, p)
	p, err = l.Path(all[1], all[1])
	require.NoError(t, err)
	require.True(t, p.Atomics)
	total, used, err := l.Memory(all[1])
	require.NoError(t, err)
	require.Equal(t, []int{100, 7}, []int{total, used})
}

// A library that lacks functions is asked less; nothing that is not there is
// called.
func TestOldLibrary(t *testing.T) {
	for _, symbol := range always {
		_, err := mocked(t, symbol)
		require.ErrorIs(t, err, goccl.ErrUnsupported)
		require.ErrorContains(t, err, symbol)
	}
	later := []string{"nvmlDeviceGetNvLinkVersion", "nvmlDeviceGetNvLinkRemotePciInfo_v2", "nvmlDeviceGetNvLinkRemoteDeviceType", "nvmlDeviceGetP2PStatus"}
	b, err := mocked(t, later...)
	require.NoError(t, err)
	links, err := b.links(0)
	require.NoError(t, err)
	require.Equal(t, []Link{{Number: 0}, {Number: 2}}, links)
	read, write, atomics, err := b.access(0, 1)
	require.NoError(t, err)
	require.False(t, read || write || atomics)
	b, err = mocked(t, "nvmlDeviceGetNvLinkState")
	require.NoError(t, err)
	links, err = b.links(0)
	require.NoError(t, err)
	require.Empty(t, links)
}
