// Command gocclrun runs the ranks of a goccl job on this machine.
//
//	gocclrun -n 4 -- ./train -epochs 3
//
// starts four processes of ./train with RANK 0 to 3, shows their output line by
// line under rank numbers, passes signals on, ends all when one fails, and exits
// with the code of the first that failed, or 128 plus its signal. "gocclrun
// help" lists all commands and flags.
package main

import (
	"fmt"
	"io"
	"os"
)

// stdio is where a command writes.
type stdio struct{ out, err io.Writer }

// command is one subcommand. run returns the exit code.
type command struct {
	name, args, summary string
	run                 func(args []string, std stdio) int
}

// commands lists the subcommands; the first one is meant when none is named.
func commands() []command {
	return []command{
		{"run", "[flags] [--] program [args...]", "run the ranks of a job on this machine (the default)", runCommand},
		{"verdict", "DIR", "say in one sentence what the dumps of a job that failed show", func(args []string, std stdio) int { return verdictMain(args, std.out, std.err) }},
	}
}

func main() { os.Exit(dispatch(os.Args[1:], stdio{os.Stdout, os.Stderr})) }

// usageError is the exit code for a command line that cannot be understood.
const usageError = 2

func dispatch(args []string, std stdio) int {
	if len(args) == 0 {
		usage(std.err)
		return usageError
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		usage(std.out)
		return 0
	}
	for _, c := range commands() {
		if args[0] == c.name {
			return c.run(args[1:], std)
		}
	}
	return runCommand(args, std)
}

func usage(w io.Writer) {
	fmt.Fprintln(w, "Usage:")
	for i, c := range commands() {
		name := " " + c.name
		if i == 0 {
			name = " [" + c.name + "]"
		}
		fmt.Fprintf(w, "  gocclrun%s %s\n        %s\n", name, c.args, c.summary)
	}
	fmt.Fprint(w, runHelp)
	flags, _ := runFlags()
	flags.SetOutput(w)
	flags.PrintDefaults()
}
