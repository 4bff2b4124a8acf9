package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/goccl/goccl/dist/launch"
)

// firstNotice is the descriptor of rank 0's pipe: the first of
// launch.Spec.ExtraFiles.
const firstNotice = 4

// notices tell the ranks what only the process that started them can know: by
// which signal one of them ended. There is a pipe for each rank.
type notices struct{ read, write []*os.File }

// newNotices makes the pipes, or none where processes inherit no files.
func newNotices(ranks int) (*notices, error) {
	n := &notices{}
	if runtime.GOOS == "windows" {
		return n, nil
	}
	for range ranks {
		r, w, err := os.Pipe()
		if err != nil {
			n.close()
			return nil, err
		}
		n.read, n.write = append(n.read, r), append(n.write, w)
	}
	return n, nil
}

// inherited is what the ranks must inherit.
func (n *notices) inherited() []*os.File { return n.read }

// started lets go of the ranks' ends.
func (n *notices) started() {
	for _, f := range n.read {
		f.Close()
	}
	n.read = nil
}

// send tells all ranks how the first of them ended, if a signal did it. It does not
// block: a pipe holds more than a line.
func (n *notices) send(cause error) {
	var exit *launch.ExitError
	if !errors.As(cause, &exit) || exit.Signal == nil {
		return
	}
	for _, w := range n.write {
		// A rank that has ended needs no notice.
		fmt.Fprintf(w, "%d %s\n", exit.Rank, fate(exit))
	}
}

// fate is what the launcher says of the rank's end: "was killed by ...".
func fate(exit *launch.ExitError) string {
	_, after, _ := strings.Cut(exit.Error(), ") ")
	return after
}

func (n *notices) close() {
	n.started()
	for _, f := range n.write {
		f.Close()
	}
	n.write = nil
}
