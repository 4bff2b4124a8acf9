package report

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *rewrite {
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

const (
	hashA = "3fa91c0e77d2b6480c5e1f2a9b8d7c6e5f4a3b2c1d0e9f8a7b6c5d4e3f2a1b0c"
	hashB = "b0c1a2f3e4d5c6b7a8f9e0d1c2b3a4f5e6c7d8b9a2f1e5c0846b2d77e0c19af3"
)

func full() *Report {
	exposed := 11.25
	return &Report{
		Run:      Run{Ranks: 4, Cores: 2, Epochs: 4, Steps: 100, Batch: 960, Train: 24000, Test: 10000, Seed: 7, Link: "200Mbps,50us"},
		Accuracy: 0.9671, Loss: 0.1463, Seconds: 8.25,
		Hashes:     []string{hashA, hashA, hashA, hashA},
		SingleRank: &Difference{Steps: 20, Early: 9e-8, End: 3.25e-7},
		Overlap:    &Overlap{Steps: 20, Hash: hashA, Other: hashA, StepMS: 82.5, OtherMS: 110.75},
		BlockedMS:  14.5, ExposedMS: &exposed, Pairs: 16,
		Buckets: []Bucket{
			{Bytes: 10280, Parameters: []string{"fc3.bias", "fc3.weight"}, ReadyMS: 2.125, LaunchedMS: 2.25, DoneMS: 4.5},
			{Bytes: 787968, Parameters: []string{"fc2.bias", "fc2.weight"}, ReadyMS: 20, LaunchedMS: 20.01, DoneMS: 55.125},
		},
	}
}

// odd is a run in which every check failed, on one rank more than there are cores.
func odd() *Report {
	r := full()
	r.Run.Ranks, r.Run.Cores, r.Run.Epochs, r.Run.NoOverlap, r.Run.Link = 2, 1, 1, true, ""
	r.Hashes = []string{hashA, hashB}
	r.SingleRank = &Difference{Steps: 1, Early: 2e-6, End: math.NaN()}
	r.Overlap.Other = hashB
	r.ExposedMS, r.Buckets = nil, nil
	return r
}

func TestWriteText(t *testing.T) {
	for name, r := range map[string]*Report{
		"full.txt":  full(),
		"odd.txt":   odd(),
		"short.txt": {Run: Run{Ranks: 1, Cores: 2, Epochs: 1, Steps: 5, Batch: 10, Train: 50, Test: 20}, Accuracy: 0.25, Loss: 2},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			require.NoError(t, r.WriteText(&b))
			golden(t, name, b.Bytes())
		})
	}
}

func TestWriteJSON(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, full().WriteJSON(&b))
	golden(t, "full.json", b.Bytes())
	var short bytes.Buffer
	require.NoError(t, (&Report{Run: Run{Ranks: 1}}).WriteJSON(&short))
	golden(t, "short.json", short.Bytes())
	for _, name := range []string{"ranks", "epochs", "accuracy", "loss", "params_equal", "single_rank_diff", "samples_per_s",
		"blocked_ms", "exposed_ms", "buckets"} {
		for _, text := range [][]byte{b.Bytes(), short.Bytes()} {
			var m map[string]any
			require.NoError(t, json.Unmarshal(text, &m))
			require.Contains(t, m, name)
		}
	}
	require.ErrorContains(t, odd().WriteJSON(&b), "not finite")
}

func TestWriteDump(t *testing.T) {
	tensors := []Tensor{
		{Name: "fc1.weight", Shape: []int{2, 3}, Data: []float32{1, -2, 3.5, 4, 5, 6}},
		{Name: "fc1.bias", Shape: []int{3}, Data: []float32{7, 8, float32(math.Inf(-1))}},
	}
	var b bytes.Buffer
	require.NoError(t, WriteDump(&b, tensors))
	raw := b.Bytes()
	n := binary.LittleEndian.Uint64(raw)
	require.Zero(t, n%8)
	var header map[string]entry
	require.NoError(t, json.Unmarshal(raw[8:8+n], &header))
	require.Len(t, header, 2)
	data := raw[8+n:]
	require.Len(t, data, 4*9)
	for _, want := range tensors {
		e := header[want.Name]
		require.Equal(t, "F32", e.DType)
		require.Equal(t, want.Shape, e.Shape)
		part := data[e.Offsets[0]:e.Offsets[1]]
		require.Len(t, part, 4*len(want.Data))
		for i, v := range want.Data {
			require.Equal(t, v, math.Float32frombits(binary.LittleEndian.Uint32(part[4*i:])), "%s[%d]", want.Name, i)
		}
	}
}

func TestWriteDumpRefuses(t *testing.T) {
	var b bytes.Buffer
	err := WriteDump(&b, []Tensor{{Name: "w", Shape: []int{2, 2}, Data: []float32{1}}})
	require.EqualError(t, err, "report: dump: w has 1 elements, its shape [2 2] means 4")
	one := Tensor{Name: "w", Shape: []int{1}, Data: []float32{1}}
	require.EqualError(t, WriteDump(&b, []Tensor{one, one}), "report: dump: two tensors are named w")
	require.Zero(t, b.Len())
}
