package trace

import (
	"fmt"
	"path"
	"strings"
)

// library is the path that our own frames begin with; programs in its examples
// are users.
const library = "github.com/goccl/goccl/"

// UserFrame finds, in goroutine stacks as the runtime prints them, where the
// user's code stands: the innermost frame of the first goroutine that belongs
// neither to Go nor to this library. It returns "main.train (/app/train.go:88)",
// or nothing.
func UserFrame(stacks string) string {
	for _, g := range strings.Split(stacks, "\n\n") {
		lines := strings.Split(g, "\n")
		// A header, then a line with the function and one with the place, by turns.
		for i := 1; i+1 < len(lines); i += 2 {
			fn := strings.TrimPrefix(lines[i], "created by ")
			if fn != lines[i] {
				break // who made the goroutine says nothing about where it is
			}
			if at, ok := place(lines[i+1]); ok && isUser(fn, at) {
				return fmt.Sprintf("%s (%s)", shortName(fn), at)
			}
		}
	}
	return ""
}

// place takes "file:line" out of "\t/app/train.go:88 +0x1d".
func place(line string) (string, bool) {
	at, ok := strings.CutPrefix(line, "\t")
	if !ok {
		return "", false
	}
	at, _, _ = strings.Cut(at, " ")
	return at, strings.Contains(at, ".go:")
}

// packageOf returns the import path of a function as stacks print it:
// "example.com/m/train.(*Loop).step(0xc000...)".
func packageOf(fn string) string {
	slash := strings.LastIndexByte(cutArgs(fn), '/')
	dot := strings.IndexByte(fn[slash+1:], '.')
	if dot < 0 {
		return fn
	}
	return fn[:slash+1+dot]
}

// cutArgs drops the arguments, which may hold any character.
func cutArgs(fn string) string {
	if i := strings.LastIndexByte(fn, '('); i > 0 && !strings.HasPrefix(fn[i:], "(*") {
		return fn[:i]
	}
	return fn
}

func shortName(fn string) string {
	fn = cutArgs(fn)
	return fn[strings.LastIndexByte(fn, '/')+1:]
}

func isUser(fn, at string) bool {
	pkg := packageOf(fn)
	if strings.HasPrefix(pkg+"/", library) {
		return strings.HasPrefix(pkg, library+"examples/") || strings.HasSuffix(pkg, "_test")
	}
	if pkg == "main" || strings.HasSuffix(pkg, "_test") {
		return true
	}
	// A package of Go lies in GOROOT/src, or has no directory in a trimmed build;
	// a few of its functions, time.Sleep for one, stand in the runtime's files.
	for _, dir := range []string{pkg, "runtime", "internal"} {
		if strings.Contains(at, "/src/"+dir+"/") {
			return false
		}
	}
	first, _, _ := strings.Cut(pkg, "/")
	return strings.Contains(first, ".") || path.IsAbs(at)
}
