package goccl_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each line is an import that must not be, and is planted to see that the rules
// catch it.
const planted = `
. github.com/x/y
device comm/graph
comm process_group
comm/bootstrap dist/store
comm comm/transport/shm
comm/exec comm/transport/net/socket
process_group process_group/backend/ccl
bucket dist
internal/simd comm/plan
dist gorgonia.org/tensor
comm/plan unsafe
process_group unsafe
process_group/backend/nccl unsafe
comm/graph time
comm/plan/check sync/atomic
comm/wire net
comm/topo golang.org/x/sys/unix
comm/plan device
dist internal/dl
device/cuda github.com/ebitengine/purego
device/kernels internal/dl
device/kernels device/kernels/lock
device/cuda device/kernels/abi/table
internal/cmd/cu2go/build unsafe
device/cuda github.com/NVIDIA/go-nvml/pkg/nvml
process_group/backend/ccl device/cuda
comm testing
comm github.com/stretchr/testify/require
dist github.com/vbauerster/mpb/v8
internal/simd github.com/mmcloughlin/avo/build
dist log
`

// allowed are imports that must be free.
const allowed = `
comm comm/transport
comm/transport/shm comm/transport
process_group/backend/ccl comm/transport/shm
process_group/dense gorgonia.org/tensor
examples/ddp gorgonia.org/tensor
comm/transport/shm unsafe
device unsafe
comm/plan comm/graph
comm/plan/machine .
comm/exec time
process_group/backend/nccl internal/dl
process_group/backend/nccl/libnccl unsafe
device/cuda internal/dl
comm/exec/cuda device/kernels/abi
internal/cmd/cu2go/nvrtc internal/dl
internal/cmd/cu2go/nvrtc unsafe
internal/cmd/cu2go device/kernels/abi/table
device/kernels/abi/table comm/plan
internal/dl github.com/ebitengine/purego
device/nvml github.com/NVIDIA/go-nvml/pkg/nvml
dist/disttest testing
comm/transport/transporttest github.com/stretchr/testify/require
examples/ddp/ui github.com/vbauerster/mpb/v8
dist log/slog
bucket sync
`

func edge(t *testing.T, line string) pkg {
	t.Helper()
	f := strings.Fields(line)
	require.Len(t, f, 2, line)
	for i, p := range f {
		if first, _, _ := strings.Cut(p, "/"); p == "." {
			f[i] = module
		} else if i == 0 || inModule[first] {
			f[i] = module + "/" + p
		}
	}
	return pkg{ImportPath: f[0], Imports: f[1:], Deps: f[1:]}
}

var inModule = map[string]bool{"comm": true, "device": true, "dist": true, "bucket": true, "process_group": true, "internal": true}

func TestImportRulesCatchPlantedEdges(t *testing.T) {
	rules, err := parseRules(importRules)
	require.NoError(t, err)
	for _, line := range strings.Split(strings.TrimSpace(planted), "\n") {
		require.NotEmpty(t, violations(rules, []pkg{edge(t, line)}), "%s is allowed", line)
	}
	for _, line := range strings.Split(strings.TrimSpace(allowed), "\n") {
		require.Empty(t, violations(rules, []pkg{edge(t, line)}), line)
	}
}

func TestRulesNeedReasons(t *testing.T) {
	_, err := parseRules("./a never import os\n./b never import os\n\tbecause\n")
	require.ErrorContains(t, err, `rule without a reason: "./a never import os"`)
	_, err = parseRules("./a should not import os\n\tbecause\n")
	require.ErrorContains(t, err, "not a rule")
}
