package cuda

import (
	"fmt"
	"sync"
	"unsafe"
)

// Place is what kind of memory an address is.
type Place int32

// The kinds. Elsewhere is all that the driver does not know: ordinary memory of
// the host, and addresses of nothing.
const (
	Elsewhere Place = iota
	OnHost          // pinned
	OnDevice
)

// String returns "elsewhere", "host" or "device".
func (p Place) String() string {
	switch p {
	case Elsewhere:
		return "elsewhere"
	case OnHost:
		return "host"
	case OnDevice:
		return "device"
	}
	return fmt.Sprintf("place(%d)", int32(p))
}

// Pointer is what the driver knows of an address. The zero value is an address
// Elsewhere.
type Pointer struct {
	Place    Place
	Device   int     // Info.Index of the GPU; for pinned memory the one it was made on
	Context  uintptr // 0 for memory that belongs to no context: mapped, or of a pool
	Base     uintptr // where its allocation, or the reserved range it is mapped in, begins
	Bytes    int     // length of that
	BufferID uint64  // different for every allocation in the life of the process
	Managed  bool    // pages move between host and devices; refuse it where that must not be
	IPC      bool    // Share can give it to another process
	FD       bool    // it was made to be exported as a file descriptor
	Pool     uintptr // the memory pool it is from, 0 for none
}

// The attributes asked for, in the order of the fields of query.
var queried = [...]uint32{2, 9, 1, 11, 12, 7, 8, 10, 14, 17}

const (
	qPlace = iota
	qDevice
	qContext
	qBase
	qBytes
	qBufferID
	qManaged
	qIPC
	qHandles
	qPool
	qCount
)

// query is memory on the heap for one question: the driver writes each attribute
// to the address in at.
type query struct {
	attrs [qCount]uint32
	data  [qCount]uint64
	at    [qCount]uintptr
}

var queries = sync.Pool{New: func() any {
	q := &query{attrs: queried}
	for i := range q.at {
		q.at[i] = uintptr(unsafe.Pointer(&q.data[i])) // q is on the heap, so it stays where it is
	}
	return q
}}

// Pointer asks what the memory at addr is, which may be any address whatever. It
// does not allocate.
func (d *Device) Pointer(addr uintptr) (Pointer, error) {
	sec, err := d.aux.Enter()
	if err != nil {
		return Pointer{}, err
	}
	defer sec.Leave()
	q := queries.Get().(*query)
	defer queries.Put(q)
	q.data = [qCount]uint64{}
	err = sec.fast(cuPointerGetAttributes, qCount, uintptr(unsafe.Pointer(&q.attrs)), uintptr(unsafe.Pointer(&q.at)), addr)
	if err != nil {
		return Pointer{}, err
	}
	if place := Place(int32(q.data[qPlace])); place != OnHost && place != OnDevice {
		return Pointer{}, nil
	}
	return Pointer{
		Place: Place(int32(q.data[qPlace])), Device: int(int32(q.data[qDevice])), Context: uintptr(q.data[qContext]),
		Base: uintptr(q.data[qBase]), Bytes: int(q.data[qBytes]), BufferID: q.data[qBufferID],
		Managed: q.data[qManaged] != 0, IPC: q.data[qIPC] != 0, FD: q.data[qHandles]&handleFD != 0, Pool: uintptr(q.data[qPool]),
	}, nil
}
