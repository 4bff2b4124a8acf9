package lock

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
)

// Closure returns the file name and every file that it includes, directly or
// not, with their hashes, sorted. All includes are written in quotes and relative to
// the root of fsys, so a file has one name; what is included from elsewhere
// would be no part of the record and is an error. Lines that NVRTC does not see,
// because they stand in the other branch of #ifdef __CUDACC_RTC__, do not count.
func Closure(fsys fs.FS, name string) ([]File, error) {
	texts, err := Texts(fsys, name)
	if err != nil {
		return nil, err
	}
	var files []File
	for path, text := range texts {
		files = append(files, File{Path: path, Sum: Sum(text)})
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return files, nil
}

// Texts is Closure with the content of the files.
func Texts(fsys fs.FS, name string) (map[string][]byte, error) {
	texts := map[string][]byte{}
	var visit func(name, from string) error
	visit = func(name, from string) error {
		if texts[name] != nil {
			return nil
		}
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return fmt.Errorf("%s: %w; includes are relative to the folder of the kernels", from, err)
		}
		texts[name] = append([]byte{}, text...) // not nil when empty
		for _, what := range includes(string(text)) {
			path, ok := strings.CutPrefix(what, `"`)
			path, _, closed := strings.Cut(path, `"`)
			if !ok || !closed || !fs.ValidPath(path) {
				return fmt.Errorf("%s: #include %s: only files of this folder, in quotes, can be included", name, what)
			}
			if err := visit(path, name); err != nil {
				return err
			}
		}
		return nil
	}
	return texts, visit(name, name)
}

var directive = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*([a-z]+)[ \t]*(.*?)[ \t\r]*$`)

// includes lists what text includes, as written. Of all conditions it knows one,
// __CUDACC_RTC__, which is defined; under the others every branch counts, and so
// does a line in a comment, which does no harm.
func includes(text string) []string {
	type branch struct{ known, seen bool } // is the condition the known one; does NVRTC see this branch
	var open []branch
	hidden := func() bool { return slices.ContainsFunc(open, func(b branch) bool { return !b.seen }) }
	var found []string
	for _, m := range directive.FindAllStringSubmatch(text, -1) {
		switch what, rest := m[1], m[2]; what {
		case "include":
			if !hidden() {
				found = append(found, rest)
			}
		case "if", "ifdef", "ifndef":
			known := what != "if" && strings.HasPrefix(rest, "__CUDACC_RTC__")
			open = append(open, branch{known: known, seen: !known || what == "ifdef"})
		case "else":
			if n := len(open); n > 0 && open[n-1].known {
				open[n-1].seen = !open[n-1].seen
			}
		case "endif":
			open = open[:max(0, len(open)-1)]
		}
	}
	return found
}
