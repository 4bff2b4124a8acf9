package ccl

import (
	"fmt"
	"hash/fnv"
	"os"
)

// HostID identifies what this process can share with others: the machine's boot
// and the namespaces of its processes, memory and network. Two processes with the
// same id can map each other's memory and reach each other's loopback. An
// override replaces all of that, for machines whose ids clash or differ wrongly.
// 0 means that nothing is known.
func HostID(override string) uint64 {
	h := fnv.New64a()
	if override != "" {
		fmt.Fprintf(h, "host %s", override)
		return h.Sum64()
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return 0
	}
	h.Write(boot)
	for _, ns := range []string{"ipc", "pid", "net"} {
		id, err := os.Readlink("/proc/self/ns/" + ns)
		if err != nil {
			return 0
		}
		fmt.Fprintf(h, " %s", id)
	}
	return h.Sum64()
}
