package cuda

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
)

// The numbers are what a C compiler says of cuda.h of CUDA 12.9, for amd64 and
// arm64 alike.
func TestLayouts(t *testing.T) {
	var (
		config launchConfig
		attr   launchAttribute
		prop   allocationProp
		desc   accessDesc
		pool   poolProps
		op     memOp
	)
	for _, c := range []struct {
		name      string
		got, want uintptr
	}{
		{"CUlaunchConfig", unsafe.Sizeof(config), 56},
		{"CUlaunchConfig.gridDimX", unsafe.Offsetof(config.grid), 0},
		{"CUlaunchConfig.blockDimX", unsafe.Offsetof(config.block), 12},
		{"CUlaunchConfig.sharedMemBytes", unsafe.Offsetof(config.shared), 24},
		{"CUlaunchConfig.hStream", unsafe.Offsetof(config.stream), 32},
		{"CUlaunchConfig.attrs", unsafe.Offsetof(config.attrs), 40},
		{"CUlaunchConfig.numAttrs", unsafe.Offsetof(config.count), 48},
		{"CUlaunchAttribute", unsafe.Sizeof(attr), 72},
		{"CUlaunchAttribute.value", unsafe.Offsetof(attr.value), 8},
		{"CUmemAllocationProp", unsafe.Sizeof(prop), 32},
		{"CUmemAllocationProp.requestedHandleTypes", unsafe.Offsetof(prop.handleTypes), 4},
		{"CUmemAllocationProp.location", unsafe.Offsetof(prop.location), 8},
		{"CUmemAllocationProp.win32HandleMetaData", unsafe.Offsetof(prop.windows), 16},
		{"CUmemAllocationProp.allocFlags.gpuDirectRDMACapable", unsafe.Offsetof(prop.rdma), 25},
		{"CUmemAllocationProp.allocFlags.usage", unsafe.Offsetof(prop.usage), 26},
		{"CUmemAccessDesc", unsafe.Sizeof(desc), 12},
		{"CUmemAccessDesc.flags", unsafe.Offsetof(desc.flags), 8},
		{"CUmemPoolProps", unsafe.Sizeof(pool), 88},
		{"CUmemPoolProps.location", unsafe.Offsetof(pool.location), 8},
		{"CUmemPoolProps.maxSize", unsafe.Offsetof(pool.maxBytes), 24},
		{"CUmemPoolProps.usage", unsafe.Offsetof(pool.usage), 32},
		{"CUstreamBatchMemOpParams", unsafe.Sizeof(op), 48},
		{"CUstreamBatchMemOpParams.waitValue.address", unsafe.Offsetof(op.addr), 8},
		{"CUstreamBatchMemOpParams.waitValue.value64", unsafe.Offsetof(op.value), 16},
		{"CUstreamBatchMemOpParams.waitValue.flags", unsafe.Offsetof(op.flags), 24},
		{"CUstreamBatchMemOpParams.waitValue.alias", unsafe.Offsetof(op.alias), 32},
		{"CUipcMemHandle", unsafe.Sizeof(rawHandle{}), 64},
		{"CUuuid", unsafe.Sizeof(UUID{}), 16},
	} {
		require.Equal(t, c.want, c.got, c.name)
	}
}

func TestEveryProcHasAName(t *testing.T) {
	seen := map[string]bool{}
	for p, name := range procNames {
		require.True(t, strings.HasPrefix(name, "cu"), "function %d", p)
		require.False(t, seen[name], name)
		seen[name] = true
		for _, never := range []string{"Managed", "Multicast", "Reset", "Prefetch", "Advise"} {
			require.NotContains(t, name, never, "it is left alone, see the package comment")
		}
	}
	require.Equal(t, "cuMemAlloc", cuMemAlloc.String())
	require.Equal(t, "cuInit", cuInit.String())
}

func TestNoDriver(t *testing.T) {
	_, err := open("libnone-goccl.so.1", "libnone-goccl.so")
	require.ErrorIs(t, err, goccl.ErrUnsupported)
	require.ErrorContains(t, err, "cuda: no NVIDIA driver: ")
	require.ErrorContains(t, err, "libnone-goccl.so.1 or libnone-goccl.so")

	if _, err := Load(); err != nil { // a machine without a driver, or without a GPU
		require.ErrorIs(t, err, goccl.ErrUnsupported)
		_, again := Load()
		require.Equal(t, err, again)
		_, opened := device.Open(device.ID{Kind: device.CUDA})
		require.Equal(t, err, opened)
	}
}

func TestParseIdentity(t *testing.T) {
	u, err := ParseUUID("GPU-1b2c3d4e-0011-2233-4455-66778899aabb")
	require.NoError(t, err)
	require.Equal(t, "GPU-1b2c3d4e-0011-2233-4455-66778899aabb", u.String())
	for _, same := range []string{"MIG-1b2c3d4e-0011-2233-4455-66778899aabb", "1B2C3D4E00112233445566778899AABB"} {
		v, err := ParseUUID(same)
		require.NoError(t, err)
		require.Equal(t, u, v)
	}
	for _, bad := range []string{"", "GPU-", "GPU-1b2c", "GPU-1b2c3d4e-0011-2233-4455-66778899aabbcc", "GPU-xb2c3d4e-0011-2233-4455-66778899aabb"} {
		_, err := ParseUUID(bad)
		require.ErrorIs(t, err, goccl.ErrInvalid, bad)
	}
	for in, want := range map[string]BusID{"0000:3B:00.0": "0000:3b:00.0", "00000000:AF:1f.7": "0000:af:1f.7", "3b:0.0": "0000:3b:00.0", "00010000:01:00.0": "10000:01:00.0"} {
		got, err := ParseBusID(in)
		require.NoError(t, err, in)
		require.Equal(t, want, got)
	}
	for _, bad := range []string{"", "3b", "3b:00", "0000:3b:00", "0000:3b:20.0", "0000:3b:00.8", "0000:13b:00.0", "0:0:0:0.0", "x:0.0"} {
		_, err := ParseBusID(bad)
		require.ErrorIs(t, err, goccl.ErrInvalid, bad)
	}
}
