package leak

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// files returns the open files, sockets and pipes of this process, and the
// memory segments that it maps.
func files() []resource {
	var found []resource
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil
	}
	for _, e := range fds {
		target, err := os.Readlink(filepath.Join("/proc/self/fd", e.Name()))
		if err != nil || pollers(target) || strings.HasPrefix(target, "/proc/") {
			continue // gone since, or the listing itself
		}
		found = append(found, resource{"fd " + e.Name() + " " + target, fmt.Sprintf("file descriptor %s: %s", e.Name(), target)})
	}
	return append(found, segments()...)
}

// pollers reports whether target belongs to the runtime's network poller, which
// is made on first use and stays.
func pollers(target string) bool {
	return target == "anon_inode:[eventpoll]" || target == "anon_inode:[eventfd]"
}

// segments returns the mapped memfd segments, one for each address.
func segments() []resource {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return nil
	}
	var found []resource
	for _, line := range strings.Split(string(maps), "\n") {
		if at := strings.Index(line, "/memfd:"); at >= 0 {
			addr, _, _ := strings.Cut(line, " ")
			found = append(found, resource{"map " + addr, fmt.Sprintf("segment %s mapped at %s", line[at:], addr)})
		}
	}
	return found
}
