package shmem

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// freeMemory returns the bytes that can still be had: what the kernel holds
// available and its swap, or less where a memory control group allows less.
func freeMemory() (int, bool) {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, false
	}
	free, ok := meminfoFree(string(b))
	if !ok {
		return 0, false
	}
	if groups, err := os.ReadFile("/proc/self/cgroup"); err == nil {
		if n, ok := cgroupFree("/sys/fs/cgroup", string(groups)); ok {
			free = min(free, n)
		}
	}
	return free, true
}

// meminfoFree reads the text of /proc/meminfo.
func meminfoFree(text string) (int, bool) {
	free, found := 0, false
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, ":")
		if name != "MemAvailable" && name != "SwapFree" {
			continue
		}
		kib, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
		if err != nil || kib < 0 {
			continue
		}
		free += kib << 10
		found = found || name == "MemAvailable"
	}
	return free, found
}

// cgroupFree returns what the process's own control group still allows, in both
// versions of the interface.
func cgroupFree(root, groups string) (int, bool) {
	for line := range strings.Lines(groups) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) != 3 {
			continue
		}
		dir, limit, usage := root, "memory.max", "memory.current"
		if part[1] != "" {
			if part[1] != "memory" {
				continue
			}
			dir, limit, usage = filepath.Join(root, "memory"), "memory.limit_in_bytes", "memory.usage_in_bytes"
		}
		dir = filepath.Join(dir, part[2])
		most, ok1 := readInt(filepath.Join(dir, limit))
		used, ok2 := readInt(filepath.Join(dir, usage))
		if ok1 && ok2 {
			return max(0, most-used), true
		}
	}
	return 0, false
}

func readInt(path string) (int, bool) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	return n, err == nil && n >= 0
}
