package testproc

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Rank is what a rank process does. An error becomes its exit code 1 and its
// last line on standard error.
type Rank func(c *Child) error

// Child is a rank process seen from inside.
type Child struct {
	Rank, Size int
	Arg        string     // Options.Arg
	Files      []*os.File // Options.Files, opened anew in this process

	ready *os.File
	lines chan string
}

// The descriptors that a parent hands down, and the variable that says so.
const (
	variable  = "GOCCL_TEST_RANK"
	readyFD   = 3
	linesFD   = 4
	firstFile = 5
)

// Enter returns at once in an ordinary test run. In a process that Start made it
// runs the rank and ends the process.
func Enter(ranks map[string]Rank) {
	v, ok := os.LookupEnv(variable)
	if !ok {
		return
	}
	os.Exit(enter(ranks, v))
}

func enter(ranks map[string]Rank, v string) int {
	f := strings.SplitN(v, " ", 5) // name, rank, size, files, argument
	if len(f) != 5 || ranks[f[0]] == nil {
		fmt.Fprintf(os.Stderr, "testproc: no rank function for %q\n", v)
		return 2
	}
	var n [3]int
	for i := range n {
		var err error
		if n[i], err = strconv.Atoi(f[i+1]); err != nil {
			fmt.Fprintf(os.Stderr, "testproc: bad start line %q\n", v)
			return 2
		}
	}
	c := &Child{Rank: n[0], Size: n[1], Arg: f[4], ready: os.NewFile(readyFD, "ready"), lines: make(chan string)}
	go c.follow(os.NewFile(linesFD, "lines"))
	for i := range n[2] {
		c.Files = append(c.Files, os.NewFile(uintptr(firstFile+i), fmt.Sprintf("file%d", i)))
	}
	if err := ranks[f[0]](c); err != nil {
		fmt.Fprintf(os.Stderr, "rank %d: %v\n", c.Rank, err)
		return 1
	}
	return 0
}

// Ready sends one line to the parent, which gets it from Proc.Next or
// Group.WaitReady. A rank may call it several times.
func (c *Child) Ready(line string) error {
	_, err := c.ready.WriteString(strings.ReplaceAll(line, "\n", " ") + "\n")
	return err
}

// Next blocks until the parent sends a line with Proc.Send and returns it.
func (c *Child) Next() string { return <-c.lines }

// follow passes the parent's lines on, and ends this process when the parent is
// gone, so that a test run that was killed leaves no rank behind.
func (c *Child) follow(lines *os.File) {
	for r := bufio.NewReader(lines); ; {
		line, err := r.ReadString('\n')
		if err != nil {
			os.Exit(orphaned)
		}
		c.lines <- strings.TrimSuffix(line, "\n")
	}
}

// orphaned is the exit code of a rank whose parent has gone.
const orphaned = 3
