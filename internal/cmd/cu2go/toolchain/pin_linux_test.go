package toolchain

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPinsAreWhole(t *testing.T) {
	for arch, w := range pinned.Linux {
		require.Len(t, w.Files, 2, arch)
		require.Contains(t, w.Files, folder+"/"+mainLibrary)
		hashes := []string{w.Hash}
		for _, h := range w.Files {
			hashes = append(hashes, h)
		}
		for _, s := range hashes {
			b, err := hex.DecodeString(s)
			require.NoError(t, err)
			require.Len(t, b, sha256.Size)
		}
	}
	path, err := Find(t.TempDir())
	require.ErrorIs(t, err, os.ErrNotExist)
	require.Equal(t, mainLibrary, filepath.Base(path))
}
