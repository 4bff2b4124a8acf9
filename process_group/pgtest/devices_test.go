package pgtest_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"unsafe"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	processgroup "github.com/goccl/goccl/process_group"
	"github.com/goccl/goccl/process_group/backend/fake"
	"github.com/goccl/goccl/process_group/pgtest"
)

// apart is a device whose memory is the host's in another place: what a case
// forgets to carry over in either direction shows.
type apart struct{ live []*span }

type span struct {
	dev  *apart
	word []uint64
}

func (a *apart) ID() device.ID { return device.ID{} }

func (a *apart) Caps() device.Caps { return device.Caps{} }

func (a *apart) Alloc(bytes int) (device.Memory, error) {
	s := &span{a, make([]uint64, bytes/8)}
	a.live = append(a.live, s)
	return s, nil
}

func (a *apart) NewStream(int) (device.Stream, error) { return nil, errors.New("no streams") }

func (a *apart) Close() error { return nil }

func (a *apart) Write(_ context.Context, dst uintptr, p []byte) error {
	copy(at(dst, len(p)), p)
	return nil
}

func (a *apart) Read(_ context.Context, p []byte, src uintptr) error {
	copy(p, at(src, len(p)))
	return nil
}

func at(addr uintptr, n int) []byte {
	return device.HostBytes(device.FromPointer(addr, n, goccl.U8, device.ID{}, nil))
}

func (s *span) Addr() uintptr { return uintptr(unsafe.Pointer(&s.word[0])) }
func (s *span) Bytes() int    { return 8 * len(s.word) }
func (s *span) Free() error {
	s.dev.live = slices.DeleteFunc(s.dev.live, func(x *span) bool { return x == s })
	return nil
}

// TestWorldApart runs the suite with buffers that are not where its values are, on
// as many ranks as two devices allow and on all.
func TestWorldApart(t *testing.T) {
	for name, n := range map[string]int{"two": 2, "eight": 8} {
		var devs []pgtest.Device
		for range n {
			devs = append(devs, new(apart))
		}
		pgtest.RunWith(t, "world/"+name, pgtest.Options{Devices: devs, Late: true, Untagged: n == 2}, func(_ *testing.T, n int) []*processgroup.Group {
			return fake.Groups(n, processgroup.Config{})
		})
		for _, d := range devs {
			if left := d.(*apart).live; len(left) > 0 {
				t.Errorf("%d spans are left", len(left))
			}
		}
	}
}
