package bucket

import (
	"testing"

	"github.com/goccl/goccl/process_group"
	"github.com/goccl/goccl/process_group/backend/fake"
)

// BenchmarkReady is one call to Ready without its copy: gradients live in the
// buckets and operations end at once. Finish is not in it.
func BenchmarkReady(b *testing.B) {
	sizes := make([]int, 512)
	for i := range sizes {
		sizes[i] = 64
	}
	g := processgroup.New(processgroup.Config{Name: "world", Size: 1, Backend: fake.Immediate()})
	defer g.Close()
	r, err := New(b.Context(), g, newNet(sizes, 0).params(true), Config{FirstBytes: 1 << 10, Bytes: 1 << 14})
	if err != nil {
		b.Fatal(err)
	}
	i := len(sizes)
	b.ReportAllocs()
	for b.Loop() {
		i--
		if err := r.Ready(i); err != nil {
			b.Fatal(err)
		}
		if i == 0 {
			i = len(sizes)
			b.StopTimer()
			if err := r.Finish(b.Context()); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	}
}
