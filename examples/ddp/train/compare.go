package train

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"

	"github.com/goccl/goccl/examples/ddp/model"
)

// Hash is the SHA-256, in hexadecimal, of the bits of all values in the order of
// params.
func Hash(params []model.Param) string {
	h := sha256.New()
	var buf []byte
	for _, p := range params {
		buf = buf[:0]
		for _, v := range p.Value.Float32s() {
			buf = binary.LittleEndian.AppendUint32(buf, math.Float32bits(v))
		}
		h.Write(buf)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Snapshot copies all values, one parameter after another.
func Snapshot(params []model.Param) []float32 {
	var all []float32
	for _, p := range params {
		all = append(all, p.Value.Float32s()...)
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
