// Package policy_test holds every Go file of the module to the habits that
// CONTRIBUTING.md lists: sizes, comments, no printing, no reading of the
// environment, headers of generated files. Who may import whom is in
// policy_test.go at the root.
package policy_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the module's folder, seen from here.
const root = ".."

// source is one parsed Go file.
type source struct {
	path  string // relative to the module, with slashes
	fset  *token.FileSet
	file  *ast.File
	lines int
}

// parseSource parses src as the file at path.
func parseSource(path string, src []byte) (source, error) {
	s := source{path: path, fset: token.NewFileSet(), lines: strings.Count(string(src), "\n")}
	var err error
	s.file, err = parser.ParseFile(s.fset, path, src, parser.ParseComments|parser.SkipObjectResolution)
	return s, err
}

// dir is the package's folder relative to the module, "." for the root.
func (s source) dir() string { return path.Dir(s.path) }

func (s source) test() bool      { return strings.HasSuffix(s.path, "_test.go") }
func (s source) command() bool   { return s.file.Name.Name == "main" }
func (s source) generated() bool { return ast.IsGenerated(s.file) }
func (s source) internal() bool  { return strings.Contains("/"+s.dir()+"/", "/internal/") }

// support reports whether s belongs to a package for tests: its users import it
// in test files only.
func (s source) support() bool {
	switch s.dir() {
	case "internal/golden", "internal/leak", "internal/testproc":
		return true
	}
	return strings.HasSuffix(s.dir(), "test")
}

// at writes the place of a node for a message.
func (s source) at(n ast.Node) string {
	return fmt.Sprintf("%s:%d", s.path, s.fset.Position(n.Pos()).Line)
}

// span is the number of lines of a node.
func (s source) span(n ast.Node) int {
	return s.fset.Position(n.End()).Line - s.fset.Position(n.Pos()).Line + 1
}

// walk calls fn with the path of every file of the module that is not under a
// hidden or testdata folder.
func walk(t *testing.T, fn func(path string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && p != root && (name == "testdata" || strings.HasPrefix(name, ".")) {
			return filepath.SkipDir
		}
		if d.Type().IsRegular() {
			rel, err := filepath.Rel(root, p)
			if err != nil {
				return err
			}
			fn(filepath.ToSlash(rel))
		}
		return nil
	})
	require.NoError(t, err)
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
	require.NoError(t, err)
	return b
}

// sources returns every Go file of the module, of all build tags and systems.
func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	walk(t, func(path string) {
		if !strings.HasSuffix(path, ".go") {
			return
		}
		s, err := parseSource(path, read(t, path))
		require.NoError(t, err)
		all = append(all, s)
	})
	require.NotEmpty(t, all)
	return all
}

// check runs one rule over all files and reports what it finds.
func check(t *testing.T, rule func(source) []string) {
	t.Helper()
	for _, s := range sources(t) {
		for _, v := range rule(s) {
			t.Error(v)
		}
	}
}

// sample is a file that a rule must accept, or find want in.
type sample struct{ path, src, want string }

// catches tries a rule on samples.
func catches(t *testing.T, rule func(source) []string, samples []sample) {
	t.Helper()
	for _, c := range samples {
		s, err := parseSource(c.path, []byte(c.src))
		require.NoError(t, err, c.src)
		found := rule(s)
		if c.want == "" {
			require.Empty(t, found, c.src)
			continue
		}
		require.Len(t, found, 1, c.src)
		require.Contains(t, found[0], c.want)
	}
}
