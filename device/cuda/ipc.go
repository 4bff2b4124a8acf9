package cuda

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/internal/dl"
)

// enablePeers lets memory of another process be opened on another GPU.
const enablePeers = 1

// bindByValue makes the two functions callable that take a handle by value.
func (d *Driver) bindByValue() error {
	if err := dl.Bind(&d.openMem, d.procs[cuIpcOpenMemHandle]); err != nil {
		return err
	}
	return dl.Bind(&d.openEvent, d.procs[cuIpcOpenEventHandle])
}

// IPCHandle is memory of another process on the way: a handle for the whole
// allocation, and where in it the memory begins. It holds as long as the memory is
// not freed.
type IPCHandle struct {
	raw    rawHandle
	offset uint64 // into the allocation
	bytes  uint64 // of the allocation
}

// ipcHandleBytes is the length of an IPCHandle on the wire.
const ipcHandleBytes = 64 + 8 + 8

// MarshalBinary returns the handle as 80 bytes.
func (h IPCHandle) MarshalBinary() ([]byte, error) {
	b := append(make([]byte, 0, ipcHandleBytes), h.raw.b[:]...)
	b = binary.LittleEndian.AppendUint64(b, h.offset)
	return binary.LittleEndian.AppendUint64(b, h.bytes), nil
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (h *IPCHandle) UnmarshalBinary(b []byte) error {
	if len(b) != ipcHandleBytes {
		return fmt.Errorf("cuda: %w: a memory handle of %d bytes, %d are right", goccl.ErrInvalid, len(b), ipcHandleBytes)
	}
	copy(h.raw.b[:], b)
	h.offset, h.bytes = binary.LittleEndian.Uint64(b[64:]), binary.LittleEndian.Uint64(b[72:])
	if h.offset >= h.bytes || h.bytes > 1<<62 {
		return fmt.Errorf("cuda: %w: a memory handle that begins at %d of %d bytes", goccl.ErrInvalid, h.offset, h.bytes)
	}
	return nil
}

// Share returns a handle with which another process of this machine opens the
// memory at addr, anywhere inside an allocation of Alloc, of CUDA's runtime
// library or of a framework's caching allocator. Mapped memory and pools cannot
// be shared so: the error wraps goccl.ErrUnsupported.
func (d *Device) Share(addr uintptr) (IPCHandle, error) {
	p, err := d.Pointer(addr)
	if err != nil {
		return IPCHandle{}, err
	}
	if p.Place != OnDevice {
		return IPCHandle{}, d.wrap(fmt.Errorf("%w: %#x is no memory of a GPU", goccl.ErrInvalid, addr))
	}
	if !p.IPC {
		return IPCHandle{}, d.wrap(fmt.Errorf("%w: the memory at %#x was mapped or comes from a pool; it goes to another process as a file descriptor, if at all",
			goccl.ErrUnsupported, addr))
	}
	h := IPCHandle{offset: uint64(addr - p.Base), bytes: uint64(p.Bytes)}
	err = d.setup(func() error { return d.drv.do(cuIpcGetMemHandle, uintptr(unsafe.Pointer(&h.raw)), p.Base) })
	return h, err
}

// OpenShared opens memory of another process. The result begins where the sharer
// said and ends with its allocation; d may be another GPU than the one that the
// memory lies on, when it can reach it. The process that shared it cannot open it
// itself.
func (d *Device) OpenShared(h IPCHandle) (*Memory, error) {
	if err := d.hold("memory"); err != nil {
		return nil, err
	}
	base := new(uintptr)
	err := d.setup(func() error {
		if code := Code(d.drv.openMem(base, h.raw, enablePeers)); code != 0 {
			return d.drv.failure(cuIpcOpenMemHandle, code)
		}
		return nil
	})
	if err != nil {
		d.letGo("memory")
		return nil, fmt.Errorf("opening %d bytes of another process: %w", h.bytes, err)
	}
	m := &Memory{dev: d, addr: *base + uintptr(h.offset), bytes: int(h.bytes - h.offset), free: d.calls(cuIpcCloseMemHandle, *base)}
	if p, err := d.Pointer(*base); err != nil || p.Bytes < int(h.bytes) {
		_ = m.Free() // the next line says more
		return nil, d.wrap(fmt.Errorf("%w: another process said that its memory has %d bytes, it has %d (%v)", goccl.ErrInvalid, h.bytes, p.Bytes, err))
	}
	return m, nil
}

// eventHandleBytes is the length of what Event.Share returns.
const eventHandleBytes = 64 + 16

// NewSharedEvent returns an event that other processes can open. Streams of this
// device wait for it and record it. A stream of another GPU cannot: the driver
// crashes when it is told to wait for an event of another process on another GPU. Let
// a stream of this device wait, record an ordinary event behind it, and wait for that.
func (d *Device) NewSharedEvent() (*Event, error) {
	e, err := d.newEvent(eventNoTiming|eventInterprocess, single)
	if err == nil {
		e.shared = true
	}
	return e, err
}

// Share returns a handle of 80 bytes with which another process opens an event of
// NewSharedEvent: the driver's, and the GPU that the event belongs to.
func (e *Event) Share() ([]byte, error) {
	if !e.shared {
		return nil, e.dev.wrap(fmt.Errorf("%w: the event was not made by NewSharedEvent", goccl.ErrInvalid))
	}
	var raw rawHandle
	err := e.dev.setup(func() error { return e.dev.drv.do(cuIpcGetEventHandle, uintptr(unsafe.Pointer(&raw)), e.handle) })
	if err != nil {
		return nil, err
	}
	return append(raw.b[:], e.dev.info.UUID[:]...), nil
}

// OpenEvent opens an event of another process. It belongs to the GPU that it was made
// on: on another one it is refused with goccl.ErrInvalid, which names the right one.
// NewSharedEvent says who may wait for it.
func (d *Device) OpenEvent(handle []byte) (*Event, error) {
	if len(handle) != eventHandleBytes {
		return nil, d.wrap(fmt.Errorf("%w: an event handle of %d bytes, %d are right", goccl.ErrInvalid, len(handle), eventHandleBytes))
	}
	var raw rawHandle
	maker := UUID(handle[copy(raw.b[:], handle):])
	if maker != d.info.UUID {
		return nil, d.wrap(fmt.Errorf("%w: the event was made on GPU %v and this is %v; open it on a device of that GPU", goccl.ErrInvalid, maker, d.info.UUID))
	}
	e := &Event{dev: d, kind: single, shared: true}
	err := d.setup(func() error {
		if code := Code(d.drv.openEvent(&e.handle, raw)); code != 0 {
			return d.drv.failure(cuIpcOpenEventHandle, code)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("opening an event of another process: %w", err)
	}
	return e, nil
}

// apart refuses to wait for e of another device.
func (d *Device) apart(e *Event) error {
	return d.wrap(fmt.Errorf("%w: the event is shared between processes and belongs to %v, for whose streams alone it is; let one of them wait for it, record an ordinary event there, and wait for that",
		goccl.ErrInvalid, e.dev.ID()))
}
