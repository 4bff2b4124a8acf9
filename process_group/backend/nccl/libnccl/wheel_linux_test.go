package libnccl

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
)

// library loads the libnccl.so.2 that GOCCL_TEST_NCCL_LIB names, or the one that
// the system has. It skips without one, unless GOCCL_REQUIRE has libnccl.
func library(t *testing.T) *Library {
	t.Helper()
	l, err := Open(os.Getenv("GOCCL_TEST_NCCL_LIB"))
	if err == nil {
		return l
	}
	require.ErrorIs(t, err, goccl.ErrUnsupported)
	require.NotContains(t, strings.Split(os.Getenv("GOCCL_REQUIRE"), ","), "libnccl", "%v", err)
	t.Skip(err)
	return nil
}

// TestFunctionsOfThisVersion holds the table against a real library: what its
// version should have is there, and what came later is not.
func TestFunctionsOfThisVersion(t *testing.T) {
	l := library(t)
	t.Logf("NCCL %v at %s", l.Version(), l.Name())
	for s, f := range functions {
		require.Equal(t, f.since <= l.version, l.fn[s] != 0, "%s, which came with %v", f.name, f.since)
	}
	require.Equal(t, l.Version() >= 22700, l.Windows())
	require.Equal(t, l.Version() < 22300, l.byValue != nil)

	old := *l.fn
	old[symCommSplit] = 0
	require.ErrorContains(t, old.complete(l.version), "lacks ncclCommSplit")
}

func TestCallsWithoutDevice(t *testing.T) {
	l := library(t)
	a, err := l.UniqueID()
	require.NoError(t, err)
	b, err := l.UniqueID()
	require.NoError(t, err)
	require.NotEqual(t, UniqueID{}, a)
	require.NotEqual(t, a, b)

	require.Equal(t, "no error", l.ErrorString(Success))
	require.Contains(t, l.ErrorString(UnhandledCudaError), "unhandled cuda error")
	require.Contains(t, l.ErrorString(RemoteError), "remote process")

	require.Equal(t, Success, l.GroupStart())
	require.Equal(t, Success, l.GroupEnd())
	err = l.Err("ncclGroupEnd", l.GroupEnd())
	require.ErrorIs(t, err, goccl.ErrInvalid, "it belongs to no GroupStart")
	require.ErrorContains(t, err, "ncclGroupEnd: ncclInvalidUsage (invalid usage")
}

func TestInitWithoutDevice(t *testing.T) {
	if _, err := os.Stat("/dev/nvidiactl"); err == nil {
		t.Skip("there is a device: TestGPU tests run")
	}
	l := library(t)
	id, err := l.UniqueID()
	require.NoError(t, err)
	var cfg Config
	cfg.Int(Blocking, 0)
	c, r, err := l.Init(1, id, 0, cfg)
	require.Nil(t, c)
	require.Equal(t, UnhandledCudaError, r)
	require.ErrorContains(t, err, "ncclCommInitRank")
	require.ErrorContains(t, err, "ncclUnhandledCudaError")
	_, err = l.Alloc(8)
	require.Error(t, err)

	cfg.Text(CommName, "x")
	if _, _, err = l.Init(1, id, 0, cfg); l.Version() < CommName.Since() {
		require.ErrorIs(t, err, goccl.ErrUnsupported)
	}
}

// header is nccl.h beside the library, as the pip packages lay it.
func header(t *testing.T, l *Library) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(filepath.Dir(l.Name()), "..", "include", "nccl.h"))
	if err != nil {
		require.NotContains(t, strings.Split(os.Getenv("GOCCL_REQUIRE"), ","), "libnccl", "%v", err)
		t.Skip(err)
	}
	return string(text)
}

// TestConfigAgainstHeader lays ncclConfig_t out from the header of the loaded
// version and holds the table against it.
func TestConfigAgainstHeader(t *testing.T) {
	l := library(t)
	text := header(t, l)
	body := regexp.MustCompile(`(?s)typedef struct ncclConfig_v\d+ \{(.*?)\} ncclConfig_t;`).FindStringSubmatch(text)
	require.NotNil(t, body)
	offset, known := 0, map[string]field{}
	for _, f := range fields {
		known[f.name] = f
	}
	for _, m := range regexp.MustCompile(`(?m)^\s*(size_t|unsigned int|int|const char ?\*) ?\*?(\w+);`).FindAllStringSubmatch(body[1], -1) {
		width := 4
		if m[1] != "int" && m[1] != "unsigned int" {
			width = 8
		}
		offset = (offset + width - 1) / width * width
		want, header := map[string]int{"size": 0, "magic": 8, "version": 12}[m[2]]
		if f, ok := known[m[2]]; ok {
			require.LessOrEqual(t, f.since, l.version, m[2])
			require.Equal(t, f.text, width == 8, m[2])
			want, header = f.offset, true
			delete(known, m[2])
		}
		require.True(t, header || l.version > Newest, "%s is not in the table", m[2])
		if header {
			require.Equal(t, want, offset, m[2])
		}
		offset += width
	}
	for name, f := range known {
		require.Greater(t, f.since, l.version, "%s is not in the header", name)
	}
	if l.version <= Newest {
		require.Equal(t, (offset+7)/8*8, sizeFor(l.version))
	}
}

// TestNumbersAgainstHeader compares the enumerations.
func TestNumbersAgainstHeader(t *testing.T) {
	text := header(t, library(t))
	number := func(name string) int {
		m := regexp.MustCompile(`\b` + name + `\s*=\s*(\d+)`).FindStringSubmatch(text)
		require.NotNil(t, m, name)
		n, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		return n
	}
	for r, x := range results {
		if Result(r) == Timeout && !strings.Contains(text, x.name) {
			continue // since 2.30
		}
		require.Equal(t, number(x.name), r, x.name)
	}
	types := map[goccl.DType]string{goccl.I8: "ncclInt8", goccl.U8: "ncclUint8", goccl.I32: "ncclInt32", goccl.U32: "ncclUint32", goccl.I64: "ncclInt64",
		goccl.U64: "ncclUint64", goccl.F16: "ncclFloat16", goccl.F32: "ncclFloat32", goccl.F64: "ncclFloat64", goccl.BF16: "ncclBfloat16"}
	for _, d := range goccl.DTypes() {
		n, err := TypeOf(d)
		require.NoError(t, err)
		require.EqualValues(t, number(types[d]), n, d)
	}
	for op, name := range map[goccl.ReduceOp]string{goccl.Sum: "ncclSum", goccl.Prod: "ncclProd", goccl.Max: "ncclMax", goccl.Min: "ncclMin", goccl.Avg: "ncclAvg"} {
		n, err := OpOf(op)
		require.NoError(t, err)
		require.EqualValues(t, number(name), n, op)
	}
	if strings.Contains(text, "NCCL_WIN_COLL_SYMMETRIC") {
		m := regexp.MustCompile(`NCCL_WIN_COLL_SYMMETRIC\s+(\w+)`).FindStringSubmatch(text)
		n, err := strconv.ParseInt(m[1], 0, 32)
		require.NoError(t, err)
		require.EqualValues(t, symmetric, n)
	}
	require.Contains(t, text, "#define NCCL_UNIQUE_ID_BYTES "+strconv.Itoa(len(UniqueID{})))
}
