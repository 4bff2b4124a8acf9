//go:build race

package simd

// lengths leaves out the longest of the plain build: there is no kernel to test
// here, and the detector sees the same accesses in short ones.
var lengths = []int{0, 1, 2, 3, 7, 8, 63, 64, 65, 200}
