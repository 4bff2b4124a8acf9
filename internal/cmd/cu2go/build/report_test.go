package build

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// said is a report of two kernels and a function that was not inlined, in the
// compiler's words.
const said = `nvrtc: warning: Architectures prior to '<compute/sm>_75' are deprecated and may be removed in a future release
ptxas info    : 0 bytes gmem, 24 bytes cmem[4]
ptxas info    : Function properties for _Z6helperPf
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Compiling entry function 'one' for 'sm_70'
ptxas info    : Function properties for one
ptxas         .     16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 64 registers, used 1 barriers, 8320 bytes smem, 400 bytes cmem[0]
ptxas info    : Compile time = 20.425 ms
ptxas info    : Compiling entry function 'two' for 'sm_70'
ptxas info    : Function properties for two
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers, used 0 barriers
`

func TestParseReport(t *testing.T) {
	f, err := ParseReport(said)
	require.NoError(t, err)
	require.Equal(t, []Function{
		{Name: "_Z6helperPf", seen: 1},
		{Name: "one", Entry: true, Registers: 64, Shared: 8320, Stack: 16, Stored: 8, Loaded: 12, seen: 2},
		{Name: "two", Entry: true, Registers: 12, seen: 2},
	}, f)
	require.Empty(t, f[0].Problem())
	require.Contains(t, f[1].Problem(), "one spills registers: 8 bytes of stores and 12 of loads")
	require.Empty(t, f[2].Problem())
	require.Contains(t, Function{Name: "f", Stack: 4}.Problem(), "f has a stack frame of 4 bytes")
}

func TestParseReportTrustsNothingElse(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"ptxas info    : Used 12 registers, used 0 barriers\n", "", "lacks registers or spills of two"},
		{"ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n", "", "lacks registers or spills of _Z6helperPf"},
		{"0 bytes gmem", "12 bytes gmem", "12 bytes of global variables"},
		{"Used 12 registers", "Takes 12 registers", "Takes 12 registers"},
		{"Compile time", "(C7510) Potential Performance Loss", "Potential Performance Loss"},
		{"spill stores, 12", "spill stored, 12", "spill stored"},
	} {
		require.Contains(t, said, c.old)
		_, err := ParseReport(strings.Replace(said, c.old, c.new, 1))
		require.ErrorContains(t, err, c.want)
	}
	_, err := ParseReport("a.cu(3): warning #177-D: variable \"x\" was declared but never referenced\n  int x;\n" + strings.Repeat("and so on\n", 100))
	require.ErrorContains(t, err, "variable \"x\" was declared")
	require.ErrorContains(t, err, "int x;\n")
	require.ErrorContains(t, err, "... and 62 lines more")
}
