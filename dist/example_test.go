package dist_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/dist"
	processgroup "github.com/goccl/goccl/process_group"
)

// With dist.FromEnv() in place of the Config, the same program is one rank of a
// job that a launcher started.
func ExampleRun() {
	err := dist.Run(context.Background(), dist.Config{Local: 4}, func(ctx context.Context, g *dist.Group) error {
		grad := []float32{1, 2, float32(g.Rank())}
		if err := g.AllReduce(device.SliceOf(grad), goccl.Avg).Wait(ctx); err != nil {
			return err
		}
		if g.Rank() == 0 {
			fmt.Println(grad)
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// [1 2 1.5]
	// <nil>
}

// The first failure of any rank ends all ranks, and is what they report.
func ExampleRun_failure() {
	err := dist.Run(context.Background(), dist.Config{Local: 3}, func(ctx context.Context, g *dist.Group) error {
		if g.Rank() == 1 {
			return errors.New("the file is damaged")
		}
		return g.Barrier(ctx) // would wait for rank 1
	})
	what, why, _ := strings.Cut(err.Error(), " failed: ")
	fmt.Println(strings.HasPrefix(what, "goccl: rank 1 ("), why)
	// Output: true the file is damaged
}

func ExampleInitLocal() {
	ctx := context.Background()
	jobs, err := dist.InitLocal(ctx, 2, dist.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	done := make(chan string)
	for _, j := range jobs {
		go func() {
			defer j.Close()
			words := make([]int64, 2)
			err := processgroup.AllGather(ctx, j.World(), words, []int64{int64(10 + j.Rank())})
			done <- fmt.Sprint(words, err)
		}()
	}
	fmt.Println(<-done)
	fmt.Println(<-done)
	// Output:
	// [10 11] <nil>
	// [10 11] <nil>
}

func ExampleShard() {
	var seen [2][]int
	err := dist.Run(context.Background(), dist.Config{Local: 2}, func(ctx context.Context, g *dist.Group) error {
		seen[g.Rank()] = slices.Collect(dist.Shard(6, g, 42, 0))
		return nil
	})
	all := slices.Concat(seen[:]...)
	slices.Sort(all)
	fmt.Println(len(seen[0]), len(seen[1]), all, err)
	// Output: 3 3 [0 1 2 3 4 5] <nil>
}

// Two pipeline stages of two data-parallel ranks each.
func ExampleJob_Mesh() {
	err := dist.Run(context.Background(), dist.Config{Local: 4}, func(ctx context.Context, g *dist.Group) error {
		j, _ := dist.JobOf(ctx)
		m, err := j.Mesh(ctx, g, dist.Axis{Name: "stage", Size: 2}, dist.Axis{Name: "data", Size: 2})
		if err != nil {
			return err
		}
		if g.Rank() == 3 {
			peer, err := m.Along("data").GlobalRank(0)
			fmt.Println("stage", m.Place("stage"), "replica", m.Place("data"), "averages with rank", peer, err)
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// stage 1 replica 1 averages with rank 2 <nil>
	// <nil>
}
