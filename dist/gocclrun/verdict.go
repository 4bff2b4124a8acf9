package main

import (
	"fmt"
	"io"

	"github.com/goccl/goccl/trace"
)

const verdictUsage = `usage: gocclrun verdict DIR

Reads the flight recorder dumps that the ranks of a job left in DIR and prints one
sentence: which rank never called which operation, was stopped, died, or called
something else than the others.`

// verdictMain is the command "gocclrun verdict DIR". It returns the exit code: 0
// with a sentence on stdout, 1 when the dumps cannot be read, 2 for wrong usage.
func verdictMain(args []string, stdout, stderr io.Writer) int {
	if len(args) == 1 && (args[0] == "-h" || args[0] == "-help" || args[0] == "--help") {
		fmt.Fprintln(stdout, verdictUsage)
		return 0
	}
	if len(args) != 1 {
		fmt.Fprintln(stderr, verdictUsage)
		return 2
	}
	dumps, err := trace.Load(args[0])
	if err != nil {
		fmt.Fprintln(stderr, "gocclrun verdict:", err)
		return 1
	}
	fmt.Fprintln(stdout, trace.Verdict(dumps))
	return 0
}
