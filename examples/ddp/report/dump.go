package report

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
)

// Tensor is a named float32 array in row-major order.
type Tensor struct {
	Name  string
	Shape []int
	Data  []float32
}

// entry describes one tensor in the header of a safetensors file.
type entry struct {
	DType   string   `json:"dtype"`
	Shape   []int    `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"` // in the data, which begins after the header
}

// WriteDump writes tensors in the safetensors format, which NumPy and PyTorch
// read with the package of that name: the length of the header as a little-endian
// 64-bit number, the header as JSON padded with spaces to a multiple of 8 bytes,
// then the data, little-endian, one tensor after another.
func WriteDump(w io.Writer, tensors []Tensor) error {
	header := make(map[string]entry, len(tensors))
	var offset int64
	for _, t := range tensors {
		size := 1
		for _, n := range t.Shape {
			size *= n
		}
		if size != len(t.Data) {
			return fmt.Errorf("report: dump: %s has %d elements, its shape %v means %d", t.Name, len(t.Data), t.Shape, size)
		}
		if _, twice := header[t.Name]; twice {
			return fmt.Errorf("report: dump: two tensors are named %s", t.Name)
		}
		end := offset + 4*int64(size)
		header[t.Name] = entry{DType: "F32", Shape: t.Shape, Offsets: [2]int64{offset, end}}
		offset = end
	}
	text, err := json.Marshal(header)
	if err != nil {
		return fmt.Errorf("report: dump: %w", err)
	}
	for len(text)%8 != 0 {
		text = append(text, ' ')
	}
	b := bufio.NewWriter(w) // keeps its first error until Flush
	b.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(text))))
	b.Write(text)
	var word [4]byte
	for _, t := range tensors {
		for _, v := range t.Data {
			binary.LittleEndian.PutUint32(word[:], math.Float32bits(v))
			b.Write(word[:])
		}
	}
	return b.Flush()
}
