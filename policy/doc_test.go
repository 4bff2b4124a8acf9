package policy_test

import (
	"fmt"
	"go/ast"
	"testing"
)

func TestExportedNamesHaveComments(t *testing.T) { check(t, undocumented) }

// undocumented finds exported names without a comment in packages that users can
// import. A comment on a group of constants or variables speaks for all of them.
func undocumented(s source) []string {
	if s.test() || s.command() || s.internal() || s.generated() {
		return nil
	}
	var found []string
	note := func(n *ast.Ident, docs ...*ast.CommentGroup) {
		if !n.IsExported() {
			return
		}
		for _, d := range docs {
			if d != nil && d.Text() != "" {
				return
			}
		}
		found = append(found, fmt.Sprintf("%s: exported %s has no comment", s.at(n), n.Name))
	}
	for _, d := range s.file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil || ast.IsExported(receiver(d)) {
				note(d.Name, d.Doc)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					note(spec.Name, d.Doc, spec.Doc)
				case *ast.ValueSpec:
					for _, n := range spec.Names {
						note(n, d.Doc, spec.Doc, spec.Comment)
					}
				}
			}
		}
	}
	return found
}

// receiver returns the name of a method's type.
func receiver(f *ast.FuncDecl) string {
	t := f.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

func TestMissingCommentsAreCaught(t *testing.T) {
	catches(t, undocumented, []sample{
		{"a/a.go", "package a\n\nfunc F() {}\n", "exported F has no comment"},
		{"a/a.go", "package a\n\ntype T int\n", "exported T has no comment"},
		{"a/a.go", "package a\n\nvar V int\n", "exported V has no comment"},
		{"a/a.go", "package a\n\n// T is.\ntype T[A any] struct{}\n\nfunc (t *T[A]) M() {}\n", "exported M has no comment"},
		{"a/a.go", "package a\n\n// F does.\nfunc F() {}\n\n// The constants.\nconst (\n\tA = 1\n\tB = 2\n)\n", ""},
		{"a/a.go", "package a\n\ntype t int\n\nfunc (t) M() {}\n", ""},
		{"a/internal/b/a.go", "package b\n\nfunc F() {}\n", ""},
		{"a/a_test.go", "package a\n\nfunc F() {}\n", ""},
	})
}

// Every package says in its comment what it is.
func TestPackagesHaveComments(t *testing.T) {
	for _, v := range packagesWithout(sources(t)) {
		t.Error(v)
	}
}

func packagesWithout(all []source) []string {
	documented, seen := map[string]bool{}, map[string]bool{}
	var order, found []string
	for _, s := range all {
		if s.test() {
			continue
		}
		if !seen[s.dir()] {
			seen[s.dir()] = true
			order = append(order, s.dir())
		}
		documented[s.dir()] = documented[s.dir()] || s.file.Doc.Text() != ""
	}
	for _, dir := range order {
		if !documented[dir] {
			found = append(found, fmt.Sprintf("package in %s has no package comment", dir))
		}
	}
	return found
}

func TestPackageWithoutCommentIsCaught(t *testing.T) {
	var all []source
	for _, c := range []sample{{"a/a.go", "package a\n", ""}, {"b/b.go", "package b\n", ""}, {"b/doc.go", "// Package b is.\npackage b\n", ""}} {
		s, err := parseSource(c.path, []byte(c.src))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	found := packagesWithout(all)
	if len(found) != 1 || found[0] != "package in a has no package comment" {
		t.Error(found)
	}
}
