package cuda

// The structures that the driver reads and writes. Their layout is that of its
// header, on processors with 8-byte addresses; a test holds sizes and offsets
// against the numbers of that header.

// Kinds of memory locations, handles and accesses.
const (
	locationDevice     = 1
	allocationPinned   = 1
	handleFD           = 1
	accessReadWrite    = 3
	granularityMinimum = 0
)

type memLocation struct {
	kind int32
	id   int32
}

type allocationProp struct {
	kind        int32
	handleTypes int32
	location    memLocation
	windows     uintptr
	compression uint8
	rdma        uint8
	usage       uint16
	_           [4]byte
}

type accessDesc struct {
	location memLocation
	flags    int32
}

type poolProps struct {
	kind        int32
	handleTypes int32
	location    memLocation
	windows     uintptr
	maxBytes    uint64
	usage       uint16
	_           [54]byte
}

// rawHandle is what the driver passes between processes for memory and events.
type rawHandle struct{ b [64]byte }

// memOp is one operation of a batch.
type memOp struct {
	op    uint32
	_     uint32
	addr  uint64
	value uint64
	flags uint32
	_     uint32
	alias uint64
	_     uint64
}

type launchConfig struct {
	grid   [3]uint32
	block  [3]uint32
	shared uint32
	_      uint32
	stream uintptr
	attrs  uintptr
	count  uint32
	_      uint32
}

type launchAttribute struct {
	id    uint32
	_     uint32
	value [16]uint32
}
