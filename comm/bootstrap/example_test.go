package bootstrap_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/goccl/goccl/comm/bootstrap"
)

// Three goroutines meet, exchange a word each and part.
func ExampleListenLocal() {
	ctx := context.Background()
	root, err := bootstrap.ListenLocal(bootstrap.RootOptions{Size: 3, Job: "example"})
	if err != nil {
		fmt.Println(err)
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := root.Serve(ctx); err != nil {
			fmt.Println(err)
		}
	})
	for rank := range 3 {
		wg.Go(func() {
			s, err := bootstrap.Join(ctx, root.ID(), bootstrap.Config{Rank: rank, Size: 3})
			if err != nil {
				fmt.Println(err)
				return
			}
			defer s.Close()
			words, err := s.AllGather(ctx, fmt.Appendf(nil, "word of %d", rank))
			if err == nil && rank == 1 {
				fmt.Printf("%s\n", words)
			}
		})
	}
	wg.Wait()
	// Output: [word of 0 word of 1 word of 2]
}
