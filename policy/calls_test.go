package policy_test

import (
	"fmt"
	"go/ast"
	"path"
	"strconv"
	"strings"
	"testing"
)

// forbidden are calls that a library must not make: it returns errors, logs to
// the logger it was given, and leaves the process to its owner.
var forbidden = map[string]string{
	"fmt.Print": "prints", "fmt.Printf": "prints", "fmt.Println": "prints",
	"os.Exit": "ends the process", "syscall.Exit": "ends the process", "runtime.Goexit": "ends the caller's goroutine",
}

// environment are the ways to read or write the environment.
var environment = map[string]bool{
	"os.Getenv": true, "os.LookupEnv": true, "os.Environ": true, "os.ExpandEnv": true, "os.Setenv": true, "os.Unsetenv": true,
	"os.Clearenv": true, "syscall.Getenv": true, "syscall.Environ": true,
}

// readers are the files and folders that may touch the environment.
var readers = []struct{ path, reason string }{
	{"internal/knob/files.go", "the registry of settings"},
	{"dist/env.go", "RANK, WORLD_SIZE and their kin, in dist.FromEnv"},
	{"dist/launch", "ranks inherit the launcher's environment"},
}

func TestLibrariesKeepQuiet(t *testing.T) { check(t, loudCalls) }

// loudCalls finds forbidden calls, reads of the environment in the wrong place,
// and panics without a reason. A panic has one when the function's comment says
// that it panics, or when "// panic: " and why stands on its line or the line
// above.
func loudCalls(s source) []string {
	if s.test() || s.command() || s.support() {
		return nil
	}
	var found []string
	names := imported(s.file)
	reasons := panicReasons(s)
	for _, d := range s.file.Decls {
		fn, _ := d.(*ast.FuncDecl)
		ast.Inspect(d, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				x, ok := n.X.(*ast.Ident)
				if !ok || names[x.Name] == "" {
					return true
				}
				name := names[x.Name] + "." + n.Sel.Name
				if why := forbidden[name]; why != "" {
					found = append(found, fmt.Sprintf("%s: %s %s; a library returns errors and takes a *slog.Logger", s.at(n), name, why))
				}
				if environment[name] && !mayRead(s.path) {
					found = append(found, fmt.Sprintf("%s: %s; settings are read in internal/knob and handed on as data", s.at(n), name))
				}
			case *ast.CallExpr:
				id, ok := n.Fun.(*ast.Ident)
				if !ok {
					return true
				}
				line := s.fset.Position(n.Pos()).Line
				switch {
				case id.Name == "print" || id.Name == "println":
					found = append(found, fmt.Sprintf("%s: %s prints", s.at(n), id.Name))
				case id.Name == "panic" && !reasons[line] && !(fn != nil && strings.Contains(fn.Doc.Text(), "panics")):
					found = append(found, fmt.Sprintf("%s: panic without a reason; return an error, or say in the comment when it panics", s.at(n)))
				}
			}
			return true
		})
	}
	return found
}

// imported maps the names under which a file knows packages to their paths.
func imported(f *ast.File) map[string]string {
	names := map[string]string{}
	for _, i := range f.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			continue
		}
		name := path.Base(p)
		if i.Name != nil {
			name = i.Name.Name
		}
		names[name] = p
	}
	return names
}

// panicReasons returns the lines for which a "// panic: why" comment speaks.
func panicReasons(s source) map[int]bool {
	lines := map[int]bool{}
	for _, g := range s.file.Comments {
		for _, c := range g.List {
			if why, ok := strings.CutPrefix(c.Text, "// panic: "); ok && strings.TrimSpace(why) != "" {
				line := s.fset.Position(c.Pos()).Line
				lines[line], lines[line+1] = true, true
			}
		}
	}
	return lines
}

func mayRead(file string) bool {
	for _, r := range readers {
		if file == r.path || strings.HasPrefix(file, r.path+"/") {
			return true
		}
	}
	return false
}

func TestLoudCallsAreCaught(t *testing.T) {
	body := func(imports, code string) string {
		return "package a\n\nimport " + imports + "\n\nfunc f() {\n\t" + code + "\n}\n"
	}
	catches(t, loudCalls, []sample{
		{"a/a.go", body(`"fmt"`, `fmt.Println("x")`), "a/a.go:6: fmt.Println prints"},
		{"a/a.go", body(`format "fmt"`, `format.Printf("x")`), "fmt.Printf prints"},
		{"a/a.go", body(`"os"`, `os.Exit(1)`), "os.Exit ends the process"},
		{"a/a.go", body(`"os"`, `defer os.Exit(1)`), "os.Exit ends the process"},
		{"a/a.go", body(`"os"`, `_ = os.Getenv`), "os.Getenv; settings are read"},
		{"dist/group.go", body(`"os"`, `_ = os.Environ()`), "os.Environ; settings are read"},
		{"dist/env.go", body(`"os"`, `_ = os.LookupEnv`), ""},
		{"dist/launch/spawn.go", body(`"os"`, `_ = os.Environ()`), ""},
		{"a/a.go", body(`"fmt"`, `_ = fmt.Sprint("x")`), ""},
		{"a/a.go", body(`"fmt"`, `panic("x")`), "panic without a reason"},
		{"a/a.go", body(`"fmt"`, "panic(1) // panic: the caller broke the contract"), ""},
		{"a/a.go", body(`"fmt"`, "// panic: the caller broke the contract\n\tpanic(1)"), ""},
		{"a/a.go", body(`"fmt"`, "panic(1) // panic: "), "panic without a reason"},
		{"a/a.go", body(`"fmt"`, `println("x")`), "println prints"},
		{"a/a.go", "package a\n\n// F panics when called.\nfunc F() { panic(1) }\n", ""},
		{"a/a_test.go", body(`"fmt"`, `panic("x")`), ""},
		{"a/a.go", strings.Replace(body(`"os"`, `os.Exit(1)`), "package a", "package main", 1), ""},
		{"dist/disttest/a.go", body(`"fmt"`, `panic("x")`), ""},
	})
}
