package cuda

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/device/devicetest"
)

// word is the first 4 bytes of pinned memory, which host and device share.
func word(p *Pinned) *atomic.Uint32 { return (*atomic.Uint32)(unsafe.Pointer(&p.Host()[0])) }

func pinned(t testing.TB, d *Device, bytes int) *Pinned {
	t.Helper()
	p, err := d.AllocPinned(bytes)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Free()) })
	return p
}

// gate blocks a stream until the returned function is called.
func gate(t testing.TB, s *Stream) (open func()) {
	t.Helper()
	p := pinned(t, s.dev, 4096)
	sec, err := s.Enter()
	require.NoError(t, err)
	defer sec.Leave()
	require.NoError(t, sec.WaitValue32(p.DeviceAddr(), 1, Equal))
	return sync.OnceFunc(func() { word(p).Store(1) })
}

func testContract(t *testing.T, m machine) {
	devicetest.Run(t, devicetest.Config{
		Open: func(t *testing.T) device.Device {
			d, err := m.Open(0)
			require.NoError(t, err)
			return d
		},
		Gate: func(t *testing.T, _ device.Device, s device.Stream) func() { return gate(t, s.(*Stream)) },
		Host: func(t *testing.T, d device.Device, bytes int) []byte { return pinned(t, d.(*Device), bytes).Host() },
		PeerMap: func(t *testing.T, d device.Device) error {
			p, err := d.(*Device).NewPhysical(1)
			if err != nil {
				return err
			}
			f, err := p.Export()
			return errors.Join(err, f.Close(), p.Release())
		},
		StreamMemOps: func(t *testing.T, d device.Device) error {
			s, err := d.(*Device).Stream(0)
			require.NoError(t, err)
			defer s.Close()
			p := pinned(t, d.(*Device), 8)
			sec, err := s.Enter()
			require.NoError(t, err)
			err = sec.WriteValue64(p.DeviceAddr(), 1<<40)
			sec.Leave()
			return errors.Join(err, s.Sync(t.Context()))
		},
		Graphs: func(t *testing.T, d device.Device) error {
			s, err := d.(*Device).Stream(0)
			require.NoError(t, err)
			defer s.Close()
			g, err := s.Capture(func() error { return nil })
			if err != nil {
				return err
			}
			return g.Close()
		},
	})
}

func TestFakeWithoutVMM(t *testing.T) {
	m := newFake(t)
	m.fake.change("vmm", 0)
	d := m.open(t, 0)
	require.False(t, d.Caps().PeerMap)
	_, err := d.NewPhysical(1)
	require.ErrorIs(t, err, goccl.ErrUnsupported)
	require.ErrorContains(t, err, "Fake GPU 0")
}
