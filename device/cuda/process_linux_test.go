package cuda

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/internal/fdpass"
	"github.com/goccl/goccl/internal/testproc"
)

// Sizes of what two processes share: not whole pages, and so small that the
// driver puts several into one block.
const (
	sharedBytes = 3<<20 + 1234
	smallBytes  = 700
	smallOffset = 100
)

// offer is what the owner sends to the user of its memory, beside a descriptor.
type offer struct {
	Large, Small []byte // IPCHandles
	Event        []byte
	Physical     int // bytes
}

// TestFakeProcesses and TestGPUProcesses share memory and an event of one process
// with another, by handle and by descriptor.
func TestFakeProcesses(t *testing.T) {
	m := newFake(t)
	shareBetween(t, "fake 2 "+m.fake.lib.Name())
}

func TestGPUProcesses(t *testing.T) {
	newGPUs(t, 1)
	t.Run("one GPU", func(t *testing.T) { shareBetween(t, "gpu 1 -") })
	t.Run("two GPUs", func(t *testing.T) {
		newGPUs(t, 2)
		shareBetween(t, "gpu 2 -")
	})
}

func shareBetween(t *testing.T, arg string) {
	g := testproc.Start(t, "share", 2, testproc.Options{Arg: arg})
	g.Procs[1].Send(t, g.Procs[0].Next(t)) // where the owner listens
	g.Wait(t)
}

// shareRank is one of the two processes.
func shareRank(c *testproc.Child) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	kind, rest, _ := strings.Cut(c.Arg, " ")
	count, path, _ := strings.Cut(rest, " ")
	names := libraries
	if kind == "fake" {
		names = []string{path}
	}
	drv, err := open(names...)
	if err != nil {
		return err
	}
	devices, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	d, err := drv.Open(c.Rank % devices)
	if err != nil {
		return err
	}
	s, err := d.Stream(0)
	if err != nil {
		return err
	}
	if c.Rank == 0 {
		err = ownMemory(ctx, c, d, s)
	} else {
		err = useMemory(ctx, c, d, s)
	}
	return errors.Join(err, s.Close(), d.Close())
}

// ownMemory is the process that makes memory and lends it.
func ownMemory(ctx context.Context, c *testproc.Child, d *Device, s *Stream) error {
	l, err := fdpass.Listen()
	if err != nil {
		return err
	}
	defer l.Close()
	if err := c.Ready(l.Addr().String()); err != nil {
		return err
	}
	conn, err := fdpass.Accept(ctx, l)
	if err != nil {
		return err
	}
	defer conn.Close()

	large, err1 := d.AllocMemory(sharedBytes)
	_, err2 := d.AllocMemory(smallBytes) // so that the next one does not begin its block
	small, err3 := d.AllocMemory(smallBytes)
	event, err4 := d.NewSharedEvent()
	phys, err5 := d.NewPhysical(sharedBytes)
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return err
	}
	mapped, err := phys.Map()
	if err != nil {
		return err
	}
	if err := errors.Join(d.Write(ctx, large.Addr(), pattern(sharedBytes, 1)), d.Write(ctx, small.Addr(), pattern(smallBytes, 2)),
		d.Write(ctx, mapped.Addr(), make([]byte, 64)), d.Write(ctx, mapped.Addr()+64, pattern(sharedBytes-64, 3))); err != nil {
		return err
	}
	if err := lend(ctx, conn, d, s, event, phys, large.Addr(), small.Addr()+smallOffset); err != nil {
		return err
	}
	// The stream goes on when the other process writes the word.
	sec, err := s.Enter()
	if err != nil {
		return err
	}
	err = sec.WaitValue32(mapped.Addr(), 17, Equal)
	sec.Leave()
	if err := errors.Join(err, s.Sync(ctx)); err != nil {
		return err
	}
	for _, want := range []struct {
		addr uintptr
		b    []byte
	}{{large.Addr(), pattern(sharedBytes, 11)}, {small.Addr() + smallOffset, pattern(smallBytes-smallOffset, 12)}, {mapped.Addr() + 64, pattern(sharedBytes-64, 13)}} {
		got := make([]byte, len(want.b))
		if err := d.Read(ctx, got, want.addr); err != nil {
			return err
		}
		if !bytes.Equal(got, want.b) {
			return fmt.Errorf("%d bytes at %#x are not what the other process wrote", len(got), want.addr)
		}
	}
	if _, _, err := fdpass.Receive(ctx, conn, make([]byte, 8), 0); err != nil { // it has closed all
		return err
	}
	event.Release()
	return errors.Join(large.Free(), small.Free(), mapped.Free(), phys.Release(), forget(d))
}

// forget frees the allocation that only took up room.
func forget(d *Device) error {
	if err := d.Close(); !errors.Is(err, goccl.ErrInvalid) {
		return fmt.Errorf("memory is left and Close says %v", err)
	}
	d.letGo("memory")
	return nil
}

func lend(ctx context.Context, conn *net.UnixConn, d *Device, s *Stream, event *Event, phys *Physical, large, small uintptr) error {
	var o offer
	for to, addr := range map[*[]byte]uintptr{&o.Large: large, &o.Small: small} {
		h, err := d.Share(addr)
		if err != nil {
			return err
		}
		if *to, err = h.MarshalBinary(); err != nil {
			return err
		}
	}
	var err error
	if o.Event, err = event.Share(); err != nil {
		return err
	}
	sec, err := s.Enter()
	if err != nil {
		return err
	}
	err = sec.RecordTo(event)
	sec.Leave()
	if err := errors.Join(err, s.Sync(ctx)); err != nil {
		return err
	}
	o.Physical = phys.Bytes()
	f, err := phys.Export()
	if err != nil {
		return err
	}
	defer f.Close()
	note, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return fdpass.Send(ctx, conn, note, f)
}

// useMemory is the process that opens the other's memory, reads and changes it.
func useMemory(ctx context.Context, c *testproc.Child, d *Device, s *Stream) error {
	conn, err := fdpass.Dial(ctx, c.Next())
	if err != nil {
		return err
	}
	defer conn.Close()
	note := make([]byte, 4096)
	n, files, err := fdpass.Receive(ctx, conn, note, 1)
	if err != nil {
		return err
	}
	defer files[0].Close()
	var o offer
	if err := json.Unmarshal(note[:n], &o); err != nil {
		return err
	}
	if err := useEvent(ctx, d.Driver(), s, o.Event); err != nil {
		return err
	}
	if err := errors.Join(rewriteShared(ctx, d, o.Large, sharedBytes, 0, 1), rewriteShared(ctx, d, o.Small, smallBytes-smallOffset, smallOffset, 2)); err != nil {
		return err
	}
	phys, err := d.ImportPhysical(files[0], o.Physical)
	if err != nil {
		return err
	}
	mapped, err := phys.Map()
	if err != nil {
		return err
	}
	if err := rewrite(ctx, d, mapped.Addr()+64, pattern(sharedBytes-64, 3), pattern(sharedBytes-64, 13)); err != nil {
		return err
	}
	sec, err := s.Enter()
	if err != nil {
		return err
	}
	err = sec.WriteValue32(mapped.Addr(), 17)
	sec.Leave()
	return errors.Join(err, s.Sync(ctx), mapped.Free(), phys.Release(), fdpass.Send(ctx, conn, []byte("closed")))
}

// useEvent opens the owner's event on the GPU that it was made on, and lets a
// stream of this process, which may be on another, wait for it.
func useEvent(ctx context.Context, drv *Driver, s *Stream, handle []byte) error {
	d, err := drv.Open(0)
	if err != nil {
		return err
	}
	event, err := d.OpenEvent(handle)
	if err != nil {
		return err
	}
	if other := s.Device(); other.Info().UUID != d.Info().UUID {
		if _, err := other.OpenEvent(handle); !errors.Is(err, goccl.ErrInvalid) {
			return fmt.Errorf("opened an event of %v on %v: %w", d.ID(), other.ID(), err)
		}
	}
	own, err := d.Stream(0)
	if err != nil {
		return err
	}
	err = errors.Join(own.WaitEvent(event), relay(s, own, event), s.Sync(ctx), own.Sync(ctx), event.Wait(ctx))
	event.Release()
	return errors.Join(err, own.Close(), d.Close())
}

// relay makes s wait for event, of another process. On another GPU than the event's
// both ways of asking the driver for it are refused, and own passes it on.
func relay(s, own *Stream, event *Event) error {
	if s.Device().Info().UUID == own.Device().Info().UUID {
		return s.WaitEvent(event)
	}
	if err := s.WaitEvent(event); !errors.Is(err, goccl.ErrInvalid) {
		return fmt.Errorf("a stream of %v waits for a shared event of %v: %w", s.Device().ID(), own.Device().ID(), err)
	}
	point, err := own.Record()
	if err != nil {
		return err
	}
	defer point.Release()
	return s.WaitEvent(point)
}

// rewriteShared opens memory by its handle, twice, since a library may meet one
// allocation in several buffers.
func rewriteShared(ctx context.Context, d *Device, wire []byte, length, skip, seed int) error {
	var h IPCHandle
	if err := h.UnmarshalBinary(wire); err != nil {
		return err
	}
	a, err := d.OpenShared(h)
	if err != nil {
		return err
	}
	b, err := d.OpenShared(h)
	if err != nil {
		return err
	}
	if a.Bytes() < length {
		return fmt.Errorf("opened %d bytes, %d are shared", a.Bytes(), length)
	}
	if err := a.Free(); err != nil {
		return err
	}
	was := pattern(skip+length, seed)[skip:]
	return errors.Join(rewrite(ctx, d, b.Addr(), was, pattern(length, seed+10)), b.Free())
}

// rewrite demands what memory holds and replaces it.
func rewrite(ctx context.Context, d *Device, addr uintptr, was, with []byte) error {
	got := make([]byte, len(was))
	if err := d.Read(ctx, got, addr); err != nil {
		return err
	}
	if !bytes.Equal(got, was) {
		return fmt.Errorf("%d bytes at %#x are not what the other process wrote", len(got), addr)
	}
	return d.Write(ctx, addr, with)
}

func TestIPCHandleOnTheWire(t *testing.T) {
	h := IPCHandle{offset: 5, bytes: 1 << 40}
	for i := range h.raw.b {
		h.raw.b[i] = byte(i + 1)
	}
	wire, err := h.MarshalBinary()
	require.NoError(t, err)
	require.Len(t, wire, 80)
	var back IPCHandle
	require.NoError(t, back.UnmarshalBinary(wire))
	require.Equal(t, h, back)
	require.ErrorIs(t, back.UnmarshalBinary(wire[1:]), goccl.ErrInvalid)
	h.offset = h.bytes
	wire, err = h.MarshalBinary()
	require.NoError(t, err)
	require.ErrorIs(t, back.UnmarshalBinary(wire), goccl.ErrInvalid, "a peer's offset is not believed")
	h.bytes = 1 << 63
	wire, err = h.MarshalBinary()
	require.NoError(t, err)
	require.ErrorIs(t, back.UnmarshalBinary(wire), goccl.ErrInvalid)
}

func TestFakeHandlesOfOthers(t *testing.T) {
	m := newFake(t)
	d := m.open(t, 0)
	h, err := d.Share(memory(t, d, 100).Addr())
	require.NoError(t, err)
	_, err = d.OpenShared(h)
	require.ErrorContains(t, err, "opening 100 bytes of another process", "one's own memory")
	h.raw.b[63] = 0
	_, err = d.OpenShared(h)
	require.ErrorIs(t, err, goccl.ErrInvalid)
	_, err = d.OpenEvent(make([]byte, 64))
	require.ErrorContains(t, err, "64 bytes, 80 are right")
	_, err = d.OpenEvent(make([]byte, 80))
	require.ErrorContains(t, err, "made on GPU GPU-00000000-0000-0000-0000-000000000000")
	bad := append(make([]byte, 64), d.info.UUID[:]...)
	_, err = d.OpenEvent(bad)
	require.ErrorIs(t, err, goccl.ErrInvalid, "the driver's part")
}

// TestFakeSharedEventsStayOnTheirGPU: what makes the driver crash is refused before it.
func TestFakeSharedEventsStayOnTheirGPU(t *testing.T) {
	m := newFake(t)
	d, other := m.open(t, 0), m.open(t, 1)
	s, err := other.Stream(0)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	shared, err := d.NewSharedEvent()
	require.NoError(t, err)
	defer shared.Release()
	err = s.WaitEvent(shared)
	require.ErrorIs(t, err, goccl.ErrInvalid)
	require.ErrorContains(t, err, "belongs to cuda:0")
	handle, err := shared.Share()
	require.NoError(t, err)
	_, err = other.OpenEvent(handle)
	require.ErrorIs(t, err, goccl.ErrInvalid)
	require.ErrorContains(t, err, d.Info().UUID.String())

	ordinary, err := d.NewEvent()
	require.NoError(t, err)
	defer ordinary.Release()
	require.NoError(t, s.WaitEvent(ordinary))
	_, err = ordinary.Share()
	require.ErrorIs(t, err, goccl.ErrInvalid)
}
