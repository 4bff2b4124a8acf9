//go:build amd64 || arm64

package dl

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The shape of ncclCommInitRank: 128 bytes by value between integers.
const byValue = `
typedef struct { char internal[128]; } id_t128;
int init_rank(long *comm, int ranks, id_t128 id, int rank) {
	long sum = 0;
	for (int i = 0; i < 128; i++) sum += (i + 1) * id.internal[i];
	*comm = sum;
	return ranks * 100 + rank;
}
void (*keep)(long);
void on(void (*f)(long)) { keep = f; }
void fire(long v) { keep(v); }
`

func TestBind128BytesByValue(t *testing.T) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no C compiler to build the library that is called")
	}
	dir := t.TempDir()
	src, lib := filepath.Join(dir, "v.c"), filepath.Join(dir, "libv.so")
	require.NoError(t, os.WriteFile(src, []byte(byValue), 0o600))
	out, err := exec.Command(gcc, "-shared", "-fPIC", "-o", lib, src).CombinedOutput()
	require.NoError(t, err, "%s", out)
	l, err := Open(lib)
	require.NoError(t, err)

	var initRank func(comm *int64, ranks int32, id struct{ b [128]byte }, rank int32) int32
	require.NoError(t, Bind(&initRank, function(t, l, "init_rank")))
	var id struct{ b [128]byte }
	want := int64(0)
	for i := range id.b {
		id.b[i] = byte(i % 100)
		want += int64(i+1) * int64(i%100)
	}
	var comm int64
	require.EqualValues(t, 803, initRank(&comm, 8, id, 3))
	require.Equal(t, want, comm)

	var got int64
	f, err := Callback(func(v int64) { got = v })
	require.NoError(t, err)
	function(t, l, "on").Call(uintptr(f))
	function(t, l, "fire").Call(^uintptr(4))
	require.EqualValues(t, -5, got, "a callback that C keeps")
}
