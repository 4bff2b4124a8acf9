package toolchain

import (
	"io"
	"path/filepath"
)

// Install returns the path of the compiler library in cache, "" for goccl's folder
// in the user's cache, after putting it there if need be; progress goes to log. A file
// that is not byte for byte the pinned one is replaced. Several processes may
// install at once. It blocks for the time of a download, ten minutes at most.
func Install(cache string, log io.Writer) (string, error) {
	dir, err := pinned.Install(cache, log)
	return filepath.Join(dir, folder, mainLibrary), err
}

// Find returns the path of the library where Install puts it, or why it is not
// there. It brings nothing.
func Find(cache string) (string, error) {
	dir, err := pinned.Find(cache)
	return filepath.Join(dir, folder, mainLibrary), err
}
