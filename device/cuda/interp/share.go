package interp

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/device/cuda"
)

// A handle is
//
//	process   16 bytes, random: says whether the memory is this process' own
//	number    8 bytes: which of its memories
//	ipc       a cuda.IPCHandle, or why there is none
//
// Within a process memory is found by its number, and GPUs reach each other's by
// peer access; a process cannot open a handle of its own.
const (
	processBytes = 16
	handleHead   = processBytes + 8 + 1
)

// exports are the memories of this process that others may import.
var exports = struct {
	sync.Mutex
	process [processBytes]byte
	next    uint64
	by      map[uint64]*cuda.Memory
}{by: map[uint64]*cuda.Memory{}}

// memory is device memory that may be exported.
type memory struct {
	*cuda.Memory
	number uint64 // 0: not exported
}

// Free frees the memory, which nobody can import any more.
func (m *memory) Free() error {
	exports.Lock()
	delete(exports.by, m.number)
	exports.Unlock()
	return m.Memory.Free()
}

// Export implements gpu.Device.
func (d *Device) Export(mem device.Memory) ([]byte, error) {
	m, ok := mem.(*memory)
	if !ok {
		return nil, fmt.Errorf("%w: memory of type %T was not made by this device", goccl.ErrInvalid, mem)
	}
	exports.Lock()
	if exports.next == 0 {
		if _, err := rand.Read(exports.process[:]); err != nil {
			exports.Unlock()
			return nil, err
		}
	}
	exports.next++
	m.number = exports.next
	exports.by[m.number] = m.Memory
	b := append([]byte(nil), exports.process[:]...)
	exports.Unlock()
	b = binary.LittleEndian.AppendUint64(b, m.number)
	// Without a way to other processes there may be none that needs it.
	ipc, err := d.dev.Share(m.Addr())
	if err != nil {
		return append(append(b, 0), err.Error()...), nil
	}
	raw, err := ipc.MarshalBinary()
	return append(append(b, 1), raw...), err
}

// Import implements gpu.Device.
func (d *Device) Import(handle []byte) (device.Memory, error) {
	if len(handle) < handleHead {
		return nil, fmt.Errorf("%w: a memory handle of %d bytes", goccl.ErrInvalid, len(handle))
	}
	number := binary.LittleEndian.Uint64(handle[processBytes:])
	exports.Lock()
	own := exports.next > 0 && string(handle[:processBytes]) == string(exports.process[:])
	m := exports.by[number]
	exports.Unlock()
	if own {
		if m == nil {
			return nil, fmt.Errorf("%w: %w", goccl.ErrInvalid, errGone)
		}
		if err := d.dev.EnablePeer(m.Device()); err != nil {
			return nil, err
		}
		return borrowed{m}, nil
	}
	if handle[handleHead-1] == 0 {
		return nil, fmt.Errorf("%w: the other process cannot share its memory: %s", goccl.ErrUnsupported, handle[handleHead:])
	}
	var ipc cuda.IPCHandle
	if err := ipc.UnmarshalBinary(handle[handleHead:]); err != nil {
		return nil, err
	}
	other, err := d.dev.OpenShared(ipc)
	if err != nil {
		return nil, err
	}
	return other, nil
}

// borrowed is another rank's memory in this process.
type borrowed struct{ *cuda.Memory }

// Free leaves the memory to its owner.
func (borrowed) Free() error { return nil }
