package nvml

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
)

// machine is two GPUs on four switch links and three, and two that are joined by
// two links of their own.
type machine struct{ closed int }

func (m *machine) devices() ([]Device, error) {
	var all []Device
	for i := range 4 {
		all = append(all, Device{Index: i, UUID: fmt.Sprintf("GPU-%d", i), BusID: fmt.Sprintf("0000:%d0:00.0", i+1), Name: "model"})
	}
	return all, nil
}

func (m *machine) memory(i int) (total, used int, err error) { return 1000 * (i + 1), 10 * i, nil }

func (m *machine) links(i int) (links []Link, err error) {
	switch i {
	case 0, 1:
		for n := range 4 - i {
			links = append(links, Link{Number: n, Version: 4, End: Switch, BusID: "0000:ff:00.0"})
		}
	default:
		for n := range 2 {
			links = append(links, Link{Number: n, Version: 2, End: GPU, BusID: fmt.Sprintf("0000:%d0:00.0", 6-i)}) // 2 and 3
		}
	}
	return links, nil
}

func (m *machine) access(from, to int) (read, write, atomics bool, err error) {
	if from == 3 && to == 0 {
		return false, false, false, errors.New("gone")
	}
	return true, from != 2, from == to, nil
}

func (m *machine) close() error { m.closed++; return nil }

func TestPaths(t *testing.T) {
	m := &machine{}
	l, err := newLibrary(m)
	require.NoError(t, err)
	all := l.Devices()
	require.Len(t, all, 4)
	for _, c := range []struct {
		a, b int
		want Path
	}{
		{0, 1, Path{Links: 3, Switched: true, Read: true, Write: true}},
		{1, 0, Path{Links: 3, Switched: true, Read: true, Write: true}},
		{2, 3, Path{Links: 2, Read: true}},
		{3, 2, Path{Links: 2, Read: true, Write: true}},
		{0, 2, Path{Read: true, Write: true}},
	} {
		p, err := l.Path(all[c.a], all[c.b])
		require.NoError(t, err)
		require.Equal(t, c.want, p, "%d to %d", c.a, c.b)
	}
	_, err = l.Path(all[3], all[0])
	require.ErrorContains(t, err, "nvml: 0000:40:00.0: gone")
	total, used, err := l.Memory(all[2])
	require.NoError(t, err)
	require.Equal(t, []int{3000, 20}, []int{total, used})

	d, err := l.ByUUID("GPU-2")
	require.NoError(t, err)
	same, err := l.ByBusID(d.BusID)
	require.NoError(t, err)
	require.Equal(t, all[2], same)
	_, err = l.ByUUID("GPU-9")
	require.ErrorIs(t, err, goccl.ErrInvalid)
	require.ErrorContains(t, err, "GPU-3")

	for range 2 {
		require.NoError(t, l.Close())
	}
	require.Equal(t, 1, m.closed)
	_, err = l.Links(all[0])
	require.ErrorIs(t, err, goccl.ErrClosed)
	require.Equal(t, "unknown GPU switch other end(9)", fmt.Sprint(UnknownEnd, GPU, Switch, Other, End(9)))
}

// On a machine with GPUs the answers must hang together; without, the error says
// what is missing.
func TestGPUMachine(t *testing.T) {
	l, err := Open()
	if err != nil {
		require.ErrorIs(t, err, goccl.ErrUnsupported)
		if slices.Contains(strings.Split(os.Getenv("GOCCL_REQUIRE"), ","), "nvml") {
			t.Fatal("GOCCL_REQUIRE has nvml: " + err.Error())
		}
		t.Skip(err)
	}
	defer l.Close()
	for _, a := range l.Devices() {
		total, used, err := l.Memory(a)
		require.NoError(t, err)
		require.Less(t, used, total)
		links, err := l.Links(a)
		require.NoError(t, err)
		t.Logf("%+v: %d of %d bytes used, %d links %+v", a, used, total, len(links), links)
		for _, b := range l.Devices() {
			p, err := l.Path(a, b)
			require.NoError(t, err)
			require.LessOrEqual(t, p.Links, len(links))
			if a != b {
				t.Logf("to %s: %+v", b.BusID, p)
			}
		}
	}
}
