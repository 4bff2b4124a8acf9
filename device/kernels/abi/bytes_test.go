package abi

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBytesAreTheStructure(t *testing.T) {
	a := ScaleArgs{X: 0x1122334455667788, N: 3, Factor: 1}
	b := Bytes(&a)
	require.Len(t, b, 24)
	require.Equal(t, a.X, binary.NativeEndian.Uint64(b))
	require.Equal(t, a.N, binary.NativeEndian.Uint64(b[8:]))
	require.Equal(t, uint32(0x3f800000), binary.NativeEndian.Uint32(b[16:]))
	require.Equal(t, []byte{0, 0, 0, 0}, b[20:])
	a.N = 5
	require.EqualValues(t, 5, binary.NativeEndian.Uint64(b[8:]))
}
