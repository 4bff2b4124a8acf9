//go:build unix

package cuda

import "golang.org/x/sys/unix"

// closeOnExec keeps a descriptor that the driver made from programs that this
// process starts.
func closeOnExec(fd int) { unix.CloseOnExec(fd) }
