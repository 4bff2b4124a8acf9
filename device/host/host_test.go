package host

import (
	"os"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/device/devicetest"
	"github.com/goccl/goccl/internal/leak"
)

func TestMain(m *testing.M) { os.Exit(leak.Check(m)) }

func TestContract(t *testing.T) {
	devicetest.Run(t, devicetest.Config{
		Open: func(*testing.T) device.Device { return Open() },
		Gate: func(t *testing.T, _ device.Device, s device.Stream) func() {
			closed := make(chan struct{})
			require.NoError(t, s.(*Stream).Do(func() { <-closed }))
			return sync.OnceFunc(func() { close(closed) })
		},
		Host: func(t *testing.T, _ device.Device, bytes int) []byte {
			b := make([]byte, bytes)
			t.Cleanup(func() { runtime.KeepAlive(b) }) // a queued copy knows only its address
			return b
		},
	})
}

func TestOpenByID(t *testing.T) {
	d, err := device.Open(device.ID{})
	require.NoError(t, err)
	require.Equal(t, "host", d.ID().String())
	require.NoError(t, d.Close())
	_, err = device.Open(device.ID{Index: 1})
	require.ErrorIs(t, err, goccl.ErrInvalid)
	_, err = device.Open(device.ID{Kind: device.CUDA})
	require.ErrorIs(t, err, goccl.ErrUnsupported)
	require.ErrorContains(t, err, "device/cuda")
	require.Panics(t, func() { device.Register(device.Host, nil) })
}
