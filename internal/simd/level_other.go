//go:build !amd64 || noasm || race

package simd

// levels lists what this build can run: plain Go.
func levels() []*level { return []*level{&genericLevel} }
