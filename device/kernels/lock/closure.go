package lock

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
)

// include finds the lines that include a file. A line in a comment counts too,
// which does no harm.
var include = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*include[ \t]*(\S.*?)[ \t]*$`)

// Closure returns the file name and every file that it includes, directly or
// not, with their hashes, sorted. All includes are written in quotes and relative to
// the root of fsys, so a file has one name; what is included from elsewhere
// would be no part of the record and is an error.
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
		for _, m := range include.FindAllSubmatch(text, -1) {
			what, ok := strings.CutPrefix(string(m[1]), `"`)
			what, _, closed := strings.Cut(what, `"`)
			if !ok || !closed || !fs.ValidPath(what) {
				return fmt.Errorf("%s: #include %s: only files of this folder, in quotes, can be included", name, m[1])
			}
			if err := visit(what, name); err != nil {
				return err
			}
		}
		return nil
	}
	return texts, visit(name, name)
}
