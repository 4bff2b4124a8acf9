// Command static uses dist and bucket and nothing else, as a framework with
// tensors of its own does. A test builds it and looks at the result.
package main

import (
	"fmt"

	"github.com/goccl/goccl/bucket"
	"github.com/goccl/goccl/dist"
)

func main() { fmt.Printf("%T %T\n", dist.Run, bucket.New) }
