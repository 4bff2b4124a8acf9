package train

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
)

// Hash is the SHA-256, in hexadecimal, of the bits of all values in the order of
// values.
func Hash(values []Value) string {
	h := sha256.New()
	var buf []byte
	for _, v := range values {
		buf = buf[:0]
		for _, x := range v.Data {
			buf = binary.LittleEndian.AppendUint32(buf, math.Float32bits(x))
		}
		h.Write(buf)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Snapshot copies all values, one parameter after another.
func Snapshot(values []Value) []float32 {
	var all []float32
	for _, v := range values {
		all = append(all, v.Data...)
	}
	return all
}

// Difference is the largest absolute difference between two snapshots. It is NaN
// if any pair's is.
func Difference(a, b []float32) (float64, error) {
	if len(a) != len(b) {
		return 0, fmt.Errorf("train: snapshots of %d and %d elements", len(a), len(b))
	}
	largest := 0.0
	for i := range a {
		largest = max(largest, math.Abs(float64(a[i])-float64(b[i])))
	}
	return largest, nil
}
