//go:build !((linux || darwin) && (amd64 || arm64) && !android && !ios)

package dl

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
)

func TestNothingLoadsHere(t *testing.T) {
	_, err := Open("libcuda.so.1")
	require.ErrorIs(t, err, goccl.ErrUnsupported)
	require.ErrorContains(t, err, "cannot be loaded on")
	require.Panics(t, func() { Func(1).Call() })
	var fn func()
	require.ErrorIs(t, Bind(&fn, 1), goccl.ErrInvalid)
	_, err = Callback(fn)
	require.ErrorIs(t, err, goccl.ErrUnsupported)
}
