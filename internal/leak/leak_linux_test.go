package leak

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestFileIsSeen(t *testing.T) {
	VerifyNone(t)
	before := snapshot()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	require.Len(t, wait(before, 0), 2)
	require.NoError(t, w.Close())
	left := wait(before, 0)
	require.Len(t, left, 1)
	require.Contains(t, left[0].text, "pipe:[")
	require.NoError(t, r.Close())
	require.Empty(t, wait(before, settle))
}

// A segment that is still mapped is seen after its descriptor was closed.
func TestSegmentIsSeen(t *testing.T) {
	VerifyNone(t)
	before := snapshot()
	fd, err := unix.MemfdCreate("goccl-leak-test", unix.MFD_CLOEXEC)
	require.NoError(t, err)
	require.NoError(t, unix.Ftruncate(fd, 4096))
	m, err := unix.Mmap(fd, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	require.NoError(t, err)
	require.NoError(t, unix.Close(fd))
	left := wait(before, 0)
	require.Len(t, left, 1)
	require.Contains(t, left[0].text, "goccl-leak-test")
	require.NoError(t, unix.Munmap(m))
	require.Empty(t, wait(before, 0))
}
