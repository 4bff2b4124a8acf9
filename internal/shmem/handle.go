package shmem

import (
	"encoding/binary"
	"fmt"
	"math"
)

// handle is what a process needs to map a segment of another one: the process
// and the number of its descriptor, and enough to tell that what is found there
// is the segment meant.
type handle struct {
	pid   int
	fd    int
	bytes int      // of the span, without the header page
	dev   uint64   // identity of the file behind the descriptor
	ino   uint64   //
	nonce [16]byte // also in the header page
}

const (
	handleVersion = 1
	handleBytes   = 4 + 4 + 4 + 8 + 8 + 8 + 16
)

// maxBytes bounds a segment: 64 TiB where addresses have 64 bits, else 1 GiB.
const maxBytes = 1 << (30 + 16*(^uint(0)>>63))

func (h handle) encode() []byte {
	b := make([]byte, 0, handleBytes)
	b = binary.LittleEndian.AppendUint32(b, handleVersion)
	b = binary.LittleEndian.AppendUint32(b, uint32(h.pid))
	b = binary.LittleEndian.AppendUint32(b, uint32(h.fd))
	b = binary.LittleEndian.AppendUint64(b, uint64(h.bytes))
	b = binary.LittleEndian.AppendUint64(b, h.dev)
	b = binary.LittleEndian.AppendUint64(b, h.ino)
	return append(b, h.nonce[:]...)
}

// decodeHandle reads a handle and checks every field that can be checked without
// opening anything.
func decodeHandle(b []byte) (handle, error) {
	var h handle
	if len(b) != handleBytes {
		return h, fmt.Errorf("shmem: handle of %d bytes, want %d", len(b), handleBytes)
	}
	if v := binary.LittleEndian.Uint32(b); v != handleVersion {
		return h, fmt.Errorf("shmem: handle of version %d, want %d: all ranks need one version of the library", v, handleVersion)
	}
	pid, fd := binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:])
	bytes := binary.LittleEndian.Uint64(b[12:])
	if pid == 0 || pid > math.MaxInt32 || fd > math.MaxInt32 {
		return h, fmt.Errorf("shmem: handle names descriptor %d of process %d", fd, pid)
	}
	if bytes == 0 || bytes > maxBytes {
		return h, fmt.Errorf("shmem: handle of a segment of %d bytes", bytes)
	}
	h.pid, h.fd, h.bytes = int(pid), int(fd), int(bytes)
	h.dev, h.ino = binary.LittleEndian.Uint64(b[20:]), binary.LittleEndian.Uint64(b[28:])
	copy(h.nonce[:], b[36:])
	return h, nil
}
