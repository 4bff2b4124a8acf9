//go:build !race

package simd

// lengths ends with one that is past the unrolled loops, and odd.
var lengths = []int{0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 1000, 16384 + 5}
