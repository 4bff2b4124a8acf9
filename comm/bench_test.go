package comm_test

import (
	"context"
	"sync"
	"testing"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm"
	"github.com/goccl/goccl/device"
)

// BenchmarkAllReduce8B is the latency of the smallest operation between two
// goroutine ranks.
func BenchmarkAllReduce8B(b *testing.B) {
	cs := world(b, 2, nil)
	ctx := context.Background()
	var wg sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for _, c := range cs {
		wg.Add(1)
		go func() {
			defer wg.Done()
			s, d := device.SliceOf(make([]float32, 2)), device.SliceOf(make([]float32, 2))
			var t comm.Task
			for range b.N {
				t.Call = comm.Call{Coll: goccl.AllReduce, Src: s, Dst: d}
				if err := c.Start(&t); err != nil {
					b.Error(err)
					return
				}
				if err := c.Wait(ctx, &t); err != nil {
					b.Error(err)
					return
				}
			}
		}()
	}
	wg.Wait()
}
