//go:build linux

package launch_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/goccl/goccl/dist/launch"
)

// Three ranks of a shell script, one of which fails.
func Example() {
	job, err := launch.Start(context.Background(), launch.Spec{
		N:       3,
		Command: []string{"sh", "-c", `[ $RANK = 2 ] || exec sleep 60; echo "rank $RANK of $WORLD_SIZE gives up"; exit 5`},
		Stdout:  os.Stdout,
		Prefix:  true,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = job.Wait()
	var exit *launch.ExitError
	if errors.As(err, &exit) {
		fmt.Println("first failure: rank", exit.Rank, "with code", exit.Code)
	}
	// Output:
	// [2] rank 2 of 3 gives up
	// first failure: rank 2 with code 5
}
