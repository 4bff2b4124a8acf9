package bucket_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/goccl/goccl/bucket"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/process_group"
)

// train is one rank's part of a job: a step of data-parallel training.
func train(ctx context.Context, g *processgroup.Group) ([]float32, error) {
	weight, gradient := make([]float32, 3), make([]float32, 3)
	r, err := bucket.New(ctx, g, []bucket.Param{
		{Name: "fc.weight", Value: device.SliceOf(weight), Grad: device.SliceOf(gradient)},
	}, bucket.Config{})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for i := range gradient { // backward, on this rank's part of the data
		gradient[i] = float32(10*i + g.Rank())
	}
	if err := r.Ready(0); err != nil { // as soon as the gradient is complete
		return nil, err
	}
	if err := r.Finish(ctx); err != nil {
		return nil, err
	}
	return gradient, nil
}

func Example() {
	ctx := context.Background()
	jobs, err := dist.InitLocal(ctx, 3, dist.Config{}) // 3 ranks as goroutines
	if err != nil {
		fmt.Println(err)
		return
	}
	var wg sync.WaitGroup
	results := make([][]float32, len(jobs))
	for rank, job := range jobs {
		wg.Go(func() {
			defer job.Close()
			grad, err := train(ctx, job.World())
			if err != nil {
				fmt.Println(err)
			}
			results[rank] = grad
		})
	}
	wg.Wait()
	for rank, grad := range results {
		fmt.Println("rank", rank, grad)
	}
	// Output:
	// rank 0 [1 11 21]
	// rank 1 [1 11 21]
	// rank 2 [1 11 21]
}
