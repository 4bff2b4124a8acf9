//go:build !unix

package cuda

// There is no driver to make a descriptor here.
func closeOnExec(int) {}
