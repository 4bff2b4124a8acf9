//go:build amd64 || arm64

package spin

// pause tells the core n times that this is a wait loop. n must not be zero.
//
//go:noescape
func pause(n uint32)
