package spin

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestQuota(t *testing.T) {
	tests := []struct {
		name, groups string
		files        map[string]string
		want         int
	}{
		{"none", "0::/\n", nil, math.MaxInt},
		{"v2 max", "0::/a\n", map[string]string{"a/cpu.max": "max 100000\n"}, math.MaxInt},
		{"v2 own group", "0::/a/b\n", map[string]string{"a/b/cpu.max": "150000 100000\n"}, 2},
		{"v2 parent is tighter", "0::/a/b\n", map[string]string{"a/b/cpu.max": "400000 100000\n", "a/cpu.max": "300000 100000\n"}, 3},
		{"v2 root of a namespace", "0::/\n", map[string]string{"cpu.max": "50000 100000\n"}, 1},
		{"v1", "4:memory:/x\n3:cpu,cpuacct:/x\n", map[string]string{"cpu/x/cpu.cfs_quota_us": "250000\n", "cpu/x/cpu.cfs_period_us": "100000\n"}, 3},
		{"v1 unlimited", "3:cpu:/x\n", map[string]string{"cpu/x/cpu.cfs_quota_us": "-1\n", "cpu/x/cpu.cfs_period_us": "100000\n"}, math.MaxInt},
		{"v1 without a period", "3:cpu:/x\n", map[string]string{"cpu/x/cpu.cfs_quota_us": "100000\n"}, math.MaxInt},
		{"nonsense", "junk\n0::/a\n", map[string]string{"a/cpu.max": "many 0\n"}, math.MaxInt},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			root := t.TempDir()
			for name, text := range test.files {
				path := filepath.Join(root, name)
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
				require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
			}
			require.Equal(t, test.want, quotaOf(root, test.groups))
		})
	}
	require.GreaterOrEqual(t, Cores(), 1)
}
