// Command ddp trains a digit classifier data-parallel: several rank processes on
// this machine, each with its part of every batch, average their gradients through
// goccl while they compute them.
//
//	go run ./examples/ddp
//
// With -device cuda each rank computes on a GPU of its own.
//
// Without RANK in the environment it is the launcher: it starts the ranks as
// copies of itself, shows their progress and ends them all when one fails. With
// RANK, which gocclrun and other launchers set, it is one rank. README.md says how
// to read what it prints.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/goccl/goccl/examples/ddp/options"
)

// usageError is the exit code for a wrong command line.
const usageError = 2

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	o, err := options.Parse(args, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return usageError
	}
	if _, isRank := os.LookupEnv("RANK"); isRank {
		return runRank(o)
	}
	return runParent(args, o)
}
