package table

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// every has a field of every kind, holes, nesting, and all forms of values.
func every() []Group {
	kind := Enum{Name: "Kind", Of: U8, Doc: "is a kind.", Values: []Value{{"None", 0, ""}, {"Some", 255, "the last"}}}
	inner := Struct{Name: "Inner", Doc: "is inside.", Fields: []Field{{Name: "a", Type: U8}, {Name: "b", Type: U16}}}
	outer := Struct{Name: "Outer", Doc: "is around.", Fields: []Field{
		{Name: "kind", Type: kind.Type()}, {Name: "n_ranks", Type: U32, Doc: "how many"}, {Name: "t", Type: Arr(I16, 3)},
		{Name: "in", Type: Arr(inner.Type(), 3)}, {Name: "p", Type: Ptr("const Inner")}, {Name: "half", Type: F32}, {Name: "x", Type: F64},
		{Name: "ps", Type: Arr(Ptr("float"), 2)}, {Name: "id", Type: I8},
	}}
	return []Group{
		{Name: "low", Doc: "types.", Enums: []Enum{kind}, Structs: []Struct{inner}},
		{Name: "high", Doc: "users of them.", Uses: []string{"low"}, Structs: []Struct{outer}, Consts: []Const{
			{"Least", I64, -1 << 63, ""}, {"Most", U64, 1<<63 - 1, "of an int64"}, {"Minus", I32, -5, ""},
		}},
	}
}

func TestLayoutFollowsC(t *testing.T) {
	l := every()[1].Structs[0].Layout()
	var b strings.Builder
	for _, f := range l.Fields {
		fmt.Fprintf(&b, "%d %s %d\n", f.Offset, f.Name, f.Type.bytes())
	}
	require.Equal(t, "0 kind 1\n1 hole0 3\n4 n_ranks 4\n8 t 6\n14 in 12\n26 hole1 6\n32 p 8\n40 half 4\n44 hole2 4\n48 x 8\n56 ps 16\n72 id 1\n73 hole3 7\n", b.String())
	require.Equal(t, 80, l.Size)
	require.Equal(t, 8, l.Align)
}

// TestCommittedFilesAreCurrent holds the generated files against the table, and
// finds those of groups that are gone.
func TestCommittedFilesAreCurrent(t *testing.T) {
	files, err := Files(Groups())
	require.NoError(t, err)
	for name, want := range files {
		have, err := os.ReadFile(filepath.Join("..", name))
		require.NoError(t, err, "run go generate ./device/kernels/abi")
		require.Equal(t, string(want), string(have), "%s is not what the table says: run go generate ./device/kernels/abi", name)
	}
	for _, pattern := range []string{"../*.go", "../*.h"} {
		all, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, f := range all {
			text, err := os.ReadFile(f)
			require.NoError(t, err)
			if name := filepath.Base(f); strings.HasPrefix(string(text), generated) {
				require.Contains(t, files, name, "no group makes %s: remove it", name)
			}
		}
	}
}

// TestGoLaysOutAlike asks Go's own type checker, for systems with different
// alignments, where the fields of the generated structs lie.
func TestGoLaysOutAlike(t *testing.T) {
	for _, groups := range [][]Group{Groups(), every()} {
		for _, arch := range []string{"amd64", "arm64", "386", "arm"} {
			pkg, err := compile(groups, arch, nil)
			require.NoError(t, err)
			sizes := types.SizesFor("gc", arch)
			for _, g := range groups {
				for _, s := range g.Structs {
					requireLayout(t, s, pkg.Scope().Lookup(s.Name).Type().Underlying().(*types.Struct), sizes)
				}
			}
		}
	}
}

func requireLayout(t *testing.T, s Struct, have *types.Struct, sizes types.Sizes) {
	t.Helper()
	want := s.Layout()
	require.Equal(t, int64(want.Size), sizes.Sizeof(have), s.Name)
	require.Equal(t, len(want.Fields), have.NumFields())
	var fields []*types.Var
	for f := range have.Fields() {
		fields = append(fields, f)
	}
	for i, off := range sizes.Offsetsof(fields) {
		f := want.Fields[i]
		require.Equal(t, int64(f.Offset), off, "%s.%s", s.Name, f.Name)
		require.Equal(t, int64(f.Type.bytes()), sizes.Sizeof(fields[i].Type()), "%s.%s", s.Name, f.Name)
	}
}

// compile type-checks the generated Go files, after edit has had its way.
func compile(groups []Group, arch string, edit func(string) string) (*types.Package, error) {
	files, err := Files(groups)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	var parsed []*ast.File
	for _, g := range groups {
		src := string(files[g.Name+".go"])
		if edit != nil {
			src = edit(src)
		}
		f, err := parser.ParseFile(fset, g.Name+".go", src, 0)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, f)
	}
	conf := types.Config{Importer: importer.Default(), Sizes: types.SizesFor("gc", arch)}
	return conf.Check("abi", fset, parsed, nil)
}

// TestGoAssertsItsLayout edits the generated structs: they must no longer compile.
func TestGoAssertsItsLayout(t *testing.T) {
	for _, edit := range [][2]string{
		{"NRanks uint32", "NRanks uint16"},
		{"_      [3]uint8", "_      [7]uint8"},
		{"X      float64", "X      float32"},
		{"ID     int8", "ID     [9]int8"},
	} {
		_, err := compile(every(), "amd64", func(src string) string {
			return strings.ReplaceAll(src, edit[0], edit[1])
		})
		require.Error(t, err, "%s became %s and the file still compiles", edit[0], edit[1])
	}
}

// TestHeadersCompile lets a C++ compiler, where there is one, check the asserts of
// the other side, and that it notices when they are wrong.
func TestHeadersCompile(t *testing.T) {
	gxx, err := exec.LookPath("g++")
	if err != nil {
		t.Skip("there is no g++")
	}
	types, err := os.ReadFile("../types.h")
	require.NoError(t, err)
	try := func(groups []Group, edit func(string) string) (string, error) {
		dir := t.TempDir()
		require.NoError(t, os.Mkdir(filepath.Join(dir, "abi"), 0o755))
		files, err := Files(groups)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "abi/types.h"), types, 0o644))
		all := ""
		for _, g := range groups {
			name := "abi/" + g.Name + ".h"
			all += "#include \"" + name + "\"\n"
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(edit(string(files[g.Name+".h"]))), 0o644))
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, "all.cc"), []byte(all), 0o644))
		out, err := exec.Command(gxx, "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", dir, filepath.Join(dir, "all.cc")).CombinedOutput()
		return string(out), err
	}
	same := func(s string) string { return s }
	for _, groups := range [][]Group{Groups(), every()} {
		out, err := try(groups, same)
		require.NoError(t, err, out)
	}
	out, err := try(every(), func(s string) string { return strings.Replace(s, "u32 n_ranks", "u64 n_ranks", 1) })
	require.Error(t, err)
	require.Contains(t, out, "Outer.n_ranks")
}

func TestMistakesAreNamed(t *testing.T) {
	one := func(f ...Field) []Group {
		return []Group{{Name: "g", Structs: []Struct{{Name: "S", Fields: f}}}}
	}
	for _, c := range []struct {
		groups []Group
		want   string
	}{
		{one(), "group g: struct S: no fields"},
		{one(Field{Name: "A", Type: U8}), `field "A": want a name like in_bytes`},
		{one(Field{Name: "type", Type: U8}), `field "type"`},
		{one(Field{Name: "hole1", Type: U8}), `field "hole1"`},
		{one(Field{Name: "a", Type: U8}, Field{Name: "a", Type: U8}), "field a occurs twice"},
		{one(Field{Name: "a"}), "field a has no size"},
		{append(one(Field{Name: "a", Type: U8}), Group{Name: "g"}), `group "g": want a new name`},
		{append(one(Field{Name: "a", Type: U8}), Group{Name: "h", Consts: []Const{{"S", U8, 1, ""}}}), "group h: S is already declared in group g"},
		{[]Group{{Name: "g", Uses: []string{"h"}}}, `uses "h"`},
		{[]Group{{Name: "g", Consts: []Const{{"C", U8, 256, ""}}}}, "C: 256 is no uint8"},
		{[]Group{{Name: "g", Consts: []Const{{"C", U8, -1, ""}}}}, "C: -1 is no uint8"},
		{[]Group{{Name: "g", Consts: []Const{{"C", I16, 1 << 15, ""}}}}, "C: 32768 is no int16"},
		{[]Group{{Name: "g", Consts: []Const{{"C", F32, 1, ""}}}}, "float32 is no integer type"},
		{[]Group{{Name: "g", Consts: []Const{{"c_d", U8, 1, ""}}}}, `name "c_d"`},
		{[]Group{{Name: "g", Enums: []Enum{{Name: "E", Of: U8, Values: []Value{{"A", 1, ""}, {"A", 2, ""}}}}}}, "EA is already declared"},
	} {
		_, err := Files(c.groups)
		require.ErrorContains(t, err, c.want)
	}
}
