package cuda

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/goccl/goccl"
)

// Attributes of a pair of devices.
const (
	p2pRank    = 1
	p2pAccess  = 2
	p2pAtomics = 3
)

// Peer says how one GPU reaches another's memory.
type Peer struct {
	Access  bool // loads and stores work
	Atomics bool // read-modify-write operations work
	Rank    int  // how good the path is among those of the machine, 0 the best
}

// Peer asks the driver how d reaches the memory of other, a device of the same
// process. A device reaches itself.
func (d *Device) Peer(other *Device) (Peer, error) {
	if d.info.ordinal == other.info.ordinal {
		return Peer{Access: true, Atomics: true}, nil
	}
	var v [4]int32
	for _, attr := range []int{p2pRank, p2pAccess, p2pAtomics} {
		err := d.drv.do(cuDeviceGetP2PAttribute, uintptr(unsafe.Pointer(&v[attr])), uintptr(attr),
			uintptr(d.info.ordinal), uintptr(other.info.ordinal))
		if err != nil {
			return Peer{}, d.wrap(err)
		}
	}
	return Peer{Access: v[p2pAccess] != 0, Atomics: v[p2pAtomics] != 0, Rank: int(v[p2pRank])}, nil
}

// EnablePeer lets work on d use all memory of Alloc on other, now and later. It
// takes milliseconds the first time and is idempotent. Mapped physical memory and
// pools name their peers instead, and do not need it.
func (d *Device) EnablePeer(other *Device) error {
	if d.ctx == other.ctx {
		return nil
	}
	var can int32
	if err := d.drv.do(cuDeviceCanAccessPeer, uintptr(unsafe.Pointer(&can)), uintptr(d.info.ordinal), uintptr(other.info.ordinal)); err != nil {
		return d.wrap(err)
	}
	if can == 0 && d.info.ordinal != other.info.ordinal {
		return d.wrap(fmt.Errorf("%w: it cannot reach the memory of cuda:%d", goccl.ErrUnsupported, other.info.Index))
	}
	err := d.setup(func() error { return d.drv.do(cuCtxEnablePeerAccess, other.ctx, 0) })
	if errors.Is(err, &Error{Code: PeerAlreadyEnabled}) {
		return nil
	}
	return err
}
