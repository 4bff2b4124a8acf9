package dist

import (
	"fmt"
	"net"

	"github.com/goccl/goccl"
)

// Identity says which rank of which job this process is.
type Identity struct {
	Rank, Size           int
	LocalRank, LocalSize int    // on this machine; -1 and 0 when not known
	Addr                 string // host:port of rank 0's store; Config.Addr wins
	Source               string // who said so: "torchrun", "caller", ...; for messages
}

// check refuses an identity that cannot be.
func (id *Identity) check() error {
	switch {
	case id.Size < 1:
		return fmt.Errorf("%w: world size %d; at least 1 is needed (from %s)", goccl.ErrInvalid, id.Size, id.source())
	case id.Rank < 0 || id.Rank >= id.Size:
		return fmt.Errorf("%w: rank %d is not below world size %d (from %s): start as many processes as the world size, with ranks from 0", goccl.ErrInvalid, id.Rank, id.Size, id.source())
	case id.LocalSize > 0 && id.LocalRank >= id.LocalSize:
		return fmt.Errorf("%w: local rank %d is not below local size %d (from %s)", goccl.ErrInvalid, id.LocalRank, id.LocalSize, id.source())
	}
	return nil
}

func (id *Identity) source() string {
	if id.Source == "" {
		return "caller"
	}
	return id.Source
}

// loopback reports whether addr is on this machine for certain, so that nothing
// needs to be reachable from elsewhere.
func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = addr
	}
	ip := net.ParseIP(host)
	return host == "" || host == "localhost" || ip != nil && ip.IsLoopback()
}
