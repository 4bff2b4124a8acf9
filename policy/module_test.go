package policy_test

import (
	"debug/elf"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Below this version the package refuses to start on a Go that it does not know;
// gorgonia's tensors depend on it. Requiring it here raises it for our users too.
const (
	gcModule = "go4.org/unsafe/assume-no-moving-gc"
	gcLeast  = "v0.0.0-20231121144256"
)

func TestGoModPinsAssumeNoMovingGC(t *testing.T) {
	require.Empty(t, pinProblem(string(read(t, "go.mod"))))
}

// pinProblem says what is wrong with the requirement in the text of a go.mod.
func pinProblem(mod string) string {
	m := regexp.MustCompile(`(?m)^\s*(?:require\s+)?` + regexp.QuoteMeta(gcModule) + `\s+(\S+)`).FindStringSubmatch(mod)
	switch {
	case m == nil:
		return "go.mod does not require " + gcModule
	case len(m[1]) < len(gcLeast) || m[1][:len(gcLeast)] < gcLeast: // same form, so text order is time order
		return "go.mod requires " + gcModule + " " + m[1] + ", at least " + gcLeast + " is needed"
	}
	return ""
}

func TestPinProblemsAreCaught(t *testing.T) {
	require.Contains(t, pinProblem("module x\n"), "does not require")
	require.Contains(t, pinProblem("require (\n\t"+gcModule+" v0.0.0-20220617031537-928513b29760 // indirect\n)\n"), "at least")
	require.Empty(t, pinProblem("require "+gcModule+" v0.0.0-20231121144256-b99613f794b6\n"))
}

// maxBinary bounds a program that uses dist and bucket, in bytes.
const maxBinary = 8_000_000

// A program that uses dist and bucket needs no C library and is small.
func TestProgramIsStaticAndSmall(t *testing.T) {
	for _, dir := range []string{"dist", "bucket"} {
		if !isPackage(t, dir) {
			t.Skipf("there is no package %s", dir)
		}
	}
	bin := filepath.Join(t.TempDir(), "static")
	cmd := exec.Command("go", "build", "-o", bin, "./testdata/static")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+runtime.GOARCH)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	info, err := os.Stat(bin)
	require.NoError(t, err)
	t.Logf("a program with dist and bucket has %d bytes", info.Size())
	require.Less(t, info.Size(), int64(maxBinary))
	require.Empty(t, dynamic(t, bin), "needs a dynamic linker")
}

// dynamic returns the dynamic linker and libraries that an ELF file asks for.
func dynamic(t *testing.T, file string) []string {
	t.Helper()
	f, err := elf.Open(file)
	require.NoError(t, err)
	defer f.Close()
	var needs []string
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			needs = append(needs, "PT_INTERP")
		}
	}
	libs, err := f.ImportedLibraries()
	require.NoError(t, err)
	return append(needs, libs...)
}

// The shell is linked dynamically on the systems where tests run, so dynamic
// must say so of it.
func TestDynamicIsCaught(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if runtime.GOOS != "linux" || err != nil {
		t.Skip("no dynamically linked ELF program is known here")
	}
	if sh, err = filepath.EvalSymlinks(sh); err != nil || strings.Contains(sh, "busybox") {
		t.Skip("the shell may be static here")
	}
	require.NotEmpty(t, dynamic(t, sh))
}

// isPackage reports whether dir holds Go files that are no tests.
func isPackage(t *testing.T, dir string) bool {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(root, dir))
	if os.IsNotExist(err) {
		return false
	}
	require.NoError(t, err)
	for _, e := range entries {
		if e.Type()&fs.ModeType == 0 && strings.HasSuffix(e.Name(), ".go") && !strings.HasSuffix(e.Name(), "_test.go") {
			return true
		}
	}
	return false
}
