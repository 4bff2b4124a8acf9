//go:build !linux

package ccl

import (
	"fmt"
	"hash/fnv"
	"os"
)

// HostID identifies this machine by its name, or by an override. Shared memory
// between processes is not used here, so it only tells loopback from the network.
func HostID(override string) uint64 {
	name := override
	if name == "" {
		host, err := os.Hostname()
		if err != nil {
			return 0
		}
		name = host
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "host %s", name)
	return h.Sum64()
}
