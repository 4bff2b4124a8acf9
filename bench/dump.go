package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/goccl/goccl/device"
)

// head is the first line of a dump: JSON, then the raw little-endian elements of
// the input and of the output.
type head struct {
	Op          string `json:"op"`
	DType       string `json:"dtype"`
	Redop       string `json:"redop"`
	Ranks       int    `json:"ranks"`
	Rank        int    `json:"rank"`
	InputCount  int    `json:"input_count"`
	OutputCount int    `json:"output_count"`
	InPlace     bool   `json:"in_place"`
}

// dump writes this rank's input and output of the last operation. In place the
// input is gone, so it is written again from the same values.
func (t *task) dump(_ context.Context, path string) error {
	in := newArray(t.o.dtype, t.src.Count)
	in.fill(func(i int) float64 { return value(t.rank, i) })
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	h, err := json.Marshal(head{Op: t.o.coll.String(), DType: t.o.dtype.String(), Redop: t.o.op.String(), Ranks: t.n, Rank: t.rank,
		InputCount: t.src.Count, OutputCount: t.dst.Count, InPlace: t.inPlace})
	if err == nil {
		_, err = fmt.Fprintf(w, "%s\n", h)
	}
	for _, b := range []device.Buffer{in.buffer(), t.dst} {
		if err == nil {
			_, err = w.Write(device.HostBytes(b))
		}
	}
	if err == nil {
		err = w.Flush()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}
