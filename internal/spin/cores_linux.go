package spin

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// quota returns the number of cores that the control groups of this process
// allow, a share of a core counted as a whole one.
func quota() int {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return math.MaxInt
	}
	return quotaOf("/sys/fs/cgroup", string(groups))
}

// quotaOf reads the quota of every group from the process's own up to the root,
// in both versions of the interface. What cannot be read does not limit.
func quotaOf(root, groups string) int {
	least := math.MaxInt
	for line := range strings.Lines(groups) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) != 3 {
			continue
		}
		dir, read := root, limitV2
		if part[1] != "" {
			if !strings.Contains(","+part[1]+",", ",cpu,") {
				continue
			}
			dir, read = filepath.Join(root, "cpu"), limitV1
		}
		for path := filepath.Join("/", part[2]); ; path = filepath.Dir(path) {
			if n, ok := read(filepath.Join(dir, path)); ok {
				least = min(least, n)
			}
			if path == "/" {
				break
			}
		}
	}
	return least
}

func limitV2(dir string) (int, bool) {
	b, err := os.ReadFile(filepath.Join(dir, "cpu.max"))
	if err != nil {
		return 0, false
	}
	quota, period, _ := strings.Cut(strings.TrimSpace(string(b)), " ")
	return share(quota, period)
}

func limitV1(dir string) (int, bool) {
	quota, err := os.ReadFile(filepath.Join(dir, "cpu.cfs_quota_us"))
	if err != nil {
		return 0, false
	}
	period, err := os.ReadFile(filepath.Join(dir, "cpu.cfs_period_us"))
	if err != nil {
		return 0, false
	}
	return share(strings.TrimSpace(string(quota)), strings.TrimSpace(string(period)))
}

func share(quota, period string) (int, bool) {
	q, err := strconv.ParseFloat(quota, 64)
	if err != nil || q <= 0 { // "max" or -1: no limit
		return 0, false
	}
	p, err := strconv.ParseFloat(period, 64)
	if err != nil || p <= 0 {
		return 0, false
	}
	return int(math.Ceil(q / p)), true
}
